#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "core/result.h"
#include "ir/graph/ids.h"

namespace fxopt {

// Symbolic integers: trees over integer constants and symbols. They have Python's semantics: floor
// division rounds down, and the modulo has the sign of the divisor. Expressions are kept as the
// tracer wrote them. They are hash-consed, so equal texts have equal ids. Expressions with
// different ids may still be equal as numbers. SymInt (ir/values/sym_int.h) compares expressions as
// numbers.
//
// The grammar of the text follows. White space between tokens is optional. The printed form is
// canonical. It has single spaces around binary operators, and only the brackets that are needed to
// read the same tree back.
//
//   expr    = cmp ;
//   cmp     = sum [ ( "==" | "!=" | "<=" | ">=" | "<" | ">" ) sum ] ;
//   sum     = product { ( "+" | "-" ) product } ;
//   product = unary { ( "*" | "//" | "%" | "/" ) unary } ;
//   unary   = "-" unary | power ;
//   power   = atom [ "**" unary ] ;
//   atom    = integer | float | symbol | function "(" [ expr { "," expr } ] ")" | "(" expr ")" ;
//
// An integer has at most 1,000 digits. An integer beyond 64 bits can be stored, printed and
// compared, but not evaluated. A "-" right before an integer or float makes a negative constant. If
// "**" follows the number, the "-" is an operator, because "**" binds tighter. A float has a point
// or an exponent, or is `inf` or `nan`. The name of a symbol or function is a word of letters,
// digits, '_' and '.'. The word begins with a letter or '_'. Any other name is in double quotes, as
// quote() writes it. The names `inf` and `nan` are in double quotes as well.
//
// fxopt can evaluate these functions: Max, Min, CeilDiv, Mod (non-negative operands),
// ModularIndexing, Abs, And, Or, Not, Where, and Pow2Floor (operands of at least 1). For binary64
// numbers, evaluate() also supports ToFloat, TruncToInt, FloorToInt, CeilToInt, RoundToInt,
// TruncToFloat, IntTrueDiv and FloatTrueDiv. Any other function can be stored, printed and
// compared, but not evaluated.
enum class ExprKind : uint8_t {
  kInt,
  kBigInt,  // an integer that needs more than 64 bits; `name` is its canonical decimal text
  kFloat,   // bits of a binary64 in `value`
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
  int64_t value = 0;           // the number of a kInt, the bits of a kFloat
  StringId name;               // the symbol, the function of a kCall, or the digits of a kBigInt
  std::vector<ExprId> inputs;  // operands, already in the table
  bool operator==(const Expr&) const = default;
};

// The values of symbols. Any expression that depends on a missing symbol has no known value.
using SymbolValues = std::unordered_map<StringId, int64_t>;

// The value of a subexpression; see ir/graph/expr_number.h.
using Number = std::variant<std::monostate, int64_t, double>;

// The expressions of one module. Ids are dense, and inputs come before users. The table stores
// names in the module's Interner.
class ExprTable {
 public:
  explicit ExprTable(Interner& strings) : strings_(&strings) {}

  ExprId constant(int64_t value);
  // Returns the id of an integer that needs more than 64 bits. `digits` has no leading zeros.
  ExprId big_integer(StringId digits);
  ExprId floating(double value);  // every NaN gets the same id
  ExprId symbol(StringId name);
  // Returns the id of an operator or a call. `name` is the name of the called function. O(inputs).
  ExprId make(ExprKind kind, std::vector<ExprId> inputs, StringId name = StringId());

  // Parses a text of the grammar above. Fails with kBadExpression, which reports the column. Fails
  // with kLimit if the nesting is deeper than 64, or for more than 65,536 nodes.
  Result<ExprId> parse(std::string_view text);

  // Returns the text of the expression. If the text is within the limits of parse(), parse()
  // returns the same id for the text. O(printed length). If nodes are shared, the printed length
  // may be exponential in the number of nodes.
  std::string to_string(ExprId id) const;

  const Expr& operator[](ExprId id) const { return exprs_[id.index()]; }
  size_t size() const { return exprs_.size(); }

  // Returns the value of the expression for the given values of symbols. Returns nullopt if a
  // symbol has no value, a function is unknown, a divisor is zero, or an operation overflows.
  std::optional<int64_t> evaluate(ExprId id, const SymbolValues& values) const;

  // Returns the value of the expression for the given values of its inputs, in the order of
  // Expr::inputs. Returns nullopt for a symbol. O(inputs).
  std::optional<int64_t> apply(ExprId id, std::span<const std::optional<int64_t>> inputs) const;

  // Returns `id` and its direct and indirect inputs. Each id occurs once, and inputs come before
  // users. O(n log n).
  std::vector<ExprId> closure(ExprId id) const;

  // Returns true if evaluate() supports the function `name`. O(functions).
  static bool is_function(std::string_view name);
  // Returns true if evaluate() supports the function with this number of arguments. O(functions).
  static bool takes(std::string_view name, size_t arguments);

  // Returns the names of the symbols that `id` depends on, in order of first appearance.
  std::vector<StringId> symbols(ExprId id) const;

 private:
  ExprId add(Expr expr);
  Number evaluate_one(ExprId id, std::span<const Number> inputs, const SymbolValues& values) const;

  friend class Module;  // Module::clone() calls set_strings()
  void set_strings(Interner& strings) { strings_ = &strings; }

  Interner* strings_;
  std::vector<Expr> exprs_;
  std::unordered_multimap<uint64_t, ExprId> index_;  // looked up, never iterated
};

// An integer that may be symbolic. If `expr` is valid, the integer is the expression. Otherwise it
// is the number `value`.
struct Dim {
  int64_t value = 0;
  ExprId expr;

  bool is_static() const { return !expr.is_valid(); }
  bool operator==(const Dim&) const = default;
};

}  // namespace fxopt
