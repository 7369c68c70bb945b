#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/result.h"
#include "ir/graph/ids.h"

namespace fxopt {

// Symbolic integers: trees over integer constants and symbols, with Python's semantics (floor
// division rounds down, the modulo has the sign of the divisor). Kept as the tracer wrote them and
// hash-consed, so equal text means equal id. Two ids may still be equal as numbers, which SymInt of
// ir/values/sym_int.h decides.
//
// Grammar of the text. Whitespace between tokens is free. Printing is canonical: single spaces
// around binary operators, and only the brackets needed to read the same tree back.
//
//   expr    = cmp ;
//   cmp     = sum [ ( "==" | "!=" | "<=" | ">=" | "<" | ">" ) sum ] ;
//   sum     = product { ( "+" | "-" ) product } ;
//   product = unary { ( "*" | "//" | "%" | "/" ) unary } ;
//   unary   = "-" unary | power ;
//   power   = atom [ "**" unary ] ;
//   atom    = integer | float | symbol | function "(" [ expr { "," expr } ] ")" | "(" expr ")" ;
//
// A "-" right before an integer or float makes a negative constant, unless "**" follows, which
// binds tighter. A float has a point or an exponent, or is `inf` or `nan`. A symbol or function is
// a word of letters, digits, '_' and '.' that begins with a letter or '_'. Any other name, and a
// name `inf` or `nan`, is in double quotes, as quote() writes it.
//
// Functions with a meaning here: Max, Min, CeilDiv, Mod (non-negative operands), ModularIndexing,
// Abs, And, Or, Not, Where, Pow2Floor (operands from 1 on). Any other name is carried, printed and
// compared, and evaluates to nothing.
enum class ExprKind : uint8_t {
  kInt,
  kFloat,  // bits of a binary64 in `value`
  kSymbol,
  kAdd,
  kSub,
  kMul,
  kFloorDiv,
  kMod,
  kTrueDiv,
  kPow,
  kNeg,
  kEq,
  kNe,
  kLe,
  kGe,
  kLt,
  kGt,
  kCall,
};

struct Expr {
  ExprKind kind = ExprKind::kInt;
  int64_t value = 0;           // kInt, kFloat
  StringId name;               // kSymbol, kCall
  std::vector<ExprId> inputs;  // operands, already in the table
};

// The values of symbols. Everything that depends on a missing symbol is unknown.
using SymbolValues = std::unordered_map<StringId, int64_t>;

// The expressions of one module. Ids are dense, inputs come before users. Shares the module's
// strings.
class ExprTable {
 public:
  explicit ExprTable(Interner& strings) : strings_(&strings) {}

  ExprId constant(int64_t value);
  ExprId floating(double value);  // every NaN is the same one
  ExprId symbol(StringId name);
  // An operator or a call; `name` is the function of a call. O(inputs).
  ExprId make(ExprKind kind, std::vector<ExprId> inputs, StringId name = StringId());

  // Parses the grammar above. Errors: kBadExpression with the column; kLimit for nesting beyond 64
  // or more than 65,536 nodes.
  Result<ExprId> parse(std::string_view text);

  // The text that parse() reads back to the same id, within parse()'s limits. O(printed length),
  // which may be exponential in the number of nodes if make() shared nodes.
  std::string to_string(ExprId id) const;

  const Expr& operator[](ExprId id) const { return exprs_[id.index()]; }
  size_t size() const { return exprs_.size(); }

  // The value under `values`. Nothing if a symbol is unbound, a function unknown, a divisor zero,
  // or a step overflows.
  std::optional<int64_t> evaluate(ExprId id, const SymbolValues& values) const;

  // The value computed from the values of its inputs, in their order; nothing for a symbol.
  // O(inputs).
  std::optional<int64_t> apply(ExprId id, std::span<const std::optional<int64_t>> inputs) const;

  // `id` and its direct and indirect inputs, each once, inputs before users. O(n log n).
  std::vector<ExprId> closure(ExprId id) const;

  // True for the functions that evaluate() knows. O(functions).
  static bool is_function(std::string_view name);
  // True if evaluate() knows the function with this number of arguments. O(functions).
  static bool takes(std::string_view name, size_t arguments);

  // Names of the symbols that `id` depends on, in order of first appearance.
  std::vector<StringId> symbols(ExprId id) const;

 private:
  ExprId add(Expr expr);

  friend class Module;  // its copy has strings of its own
  void set_strings(Interner& strings) { strings_ = &strings; }

  Interner* strings_;
  std::vector<Expr> exprs_;
  std::unordered_multimap<uint64_t, ExprId> index_;  // looked up, never iterated
};

// An integer that may be symbolic: a number if `expr` is invalid, else the expression.
struct Dim {
  int64_t value = 0;
  ExprId expr;

  bool is_static() const { return !expr.is_valid(); }
  bool operator==(const Dim&) const = default;
};

}  // namespace fxopt
