#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/hash_table.h"
#include "ir/alias/sizes.h"
#include "ir/graph/module.h"
#include "runtime/plan/plan.h"

namespace fxopt {

// Builds the scalars of a plan. A scalar is a symbol, or a value that is computed from symbols.
//
// Each distinct expression becomes one scalar, unless the expression is a number. An operand of an
// expression is therefore a number or a scalar, and the code of the expression (FxCode) pushes this
// number or scalar. The code does not repeat the code of the operand's scalar. For example, the
// expression `(a + b) * c` becomes two scalars:
//   t = PUSH a, PUSH b, ADD
//   u = PUSH t, PUSH c, MUL
// Therefore the code of all scalars together is linear in the number of distinct expressions and
// their operands, no matter how often an expression is used.
class ScalarBuilder {
 public:
  ScalarBuilder(const Module& module, Plan& plan);

  // Returns an expression or a size as a word, which is a number or a scalar. Returns kNoWord if
  // the expression has an unbound symbol or an unknown function. O(nodes of the expression that
  // were not seen before).
  FxWord of(ExprId expr);
  FxWord of(const Dim& dim);

  // Adds a scalar, which is known after `ready` steps, and binds the symbol to it. The symbol must
  // not be bound. If `symbol` is invalid, the scalar has no symbol. O(1).
  FxWord bind(StringId symbol, FxScalarSource source, FxScalarType type = FX_SCALAR_INT, uint32_t ready = 0);
  bool is_bound(StringId symbol) const { return symbols_.find(symbol) != symbols_.end(); }

  // Returns the symbol if the expression is exactly one symbol. Otherwise returns an invalid id.
  StringId symbol_of(ExprId expr) const;
  StringId symbol_of(const Dim& dim) const { return dim.is_static() ? StringId() : symbol_of(dim.expr); }

  // Returns the bytes of a storage, as evaluate_size() does. Returns kNoWord if no scalar can
  // express the bytes. The kind of `source` must not be kLike. O(rank).
  FxWord bytes_of(const SizeSource& source);

  // Returns the number of steps after which the word is known. For a constant number, this is 0.
  uint32_t ready(FxWord word) const;

 private:
  using Operands = std::vector<FxWord>;

  FxWord make(ExprId expr);
  // Binds a symbol of kind kRank to a new scalar, and returns its word. Returns kNoWord for any
  // other symbol.
  FxWord bind_rank(StringId symbol);
  FxWord compute(FxCodeOp op, std::span<const FxWord> operands);
  FxWord add(FxScalar scalar);
  void push(FxWord word);
  void apply(FxCodeOp op);
  void apply(FxCodeOp op, FxWord last);  // pushes the operand `last`, then the operator
  FxWord take(FxScalarType type);
  // These functions push code for a size. They return false if no scalar can express the size.
  // After a failure, the caller must clear pending_.
  bool push_tensor_bytes(const Tensor& tensor);
  bool push_room_bytes(const SizeSource& source);
  bool push_recorded_bytes(const SizeSource& source);

  const Module& module_;
  Plan& plan_;
  HashMap<StringId, FxWord> symbols_;
  HashMap<StringId, uint32_t> rows_;  // index of each symbol in Module::symbols
  IdMap<ExprId, FxWord> words_;
  std::vector<FxCode> pending_;
  std::map<std::vector<uint64_t>, FxWord> by_code_;
};

}  // namespace fxopt
