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

// The scalars of a plan: symbols where they become known, and what is computed from them.
//
// Each distinct expression has one scalar, whose code pushes the scalars of its operands: as many instructions as the
// expressions have nodes, however often they are used.
class ScalarBuilder {
 public:
  ScalarBuilder(const Module& module, Plan& plan);

  // An expression or a size as a word: a number, or a scalar. kNoWord where a symbol in it is not bound, or where it has
  // a function without a meaning. O(nodes of the expression that were not met before).
  FxWord of(ExprId expr);
  FxWord of(const Dim& dim);

  // A symbol becomes known: from a size of an input, as an input, or behind so many steps. Gives its scalar. The symbol
  // must not be bound. O(1).
  FxWord bind_dim(StringId symbol, uint32_t tensor, uint32_t dim);
  FxWord bind_input(StringId symbol, FxScalarType type);
  FxWord bind_step(StringId symbol, FxScalarType type, uint32_t ready);
  FxWord bind_outer(StringId symbol);
  // Of no symbol: a result of a step.
  FxWord add_step(FxScalarType type, uint32_t ready);
  bool is_bound(StringId symbol) const { return symbols_.find(symbol) != symbols_.end(); }

  // The symbol that an expression is; invalid where it is more, or less.
  StringId symbol_of(ExprId expr) const;
  StringId symbol_of(const Dim& dim) const { return dim.is_static() ? StringId() : symbol_of(dim.expr); }

  // The bytes of a storage, see evaluate_size(); kNoWord where they cannot be said. Not of kLike. O(rank).
  FxWord bytes_of(const SizeSource& source);

  // The number of steps behind which the word is known; 0 for a number.
  uint32_t ready(FxWord word) const;

 private:
  using Operands = std::vector<FxWord>;

  FxWord make(ExprId expr);
  // A symbol that is the rank's own; kNoWord for another.
  FxWord bind_rank(StringId symbol);
  FxWord compute(FxCodeOp op, std::span<const FxWord> operands);
  FxWord add(FxScalar scalar);
  FxWord bind(StringId symbol, FxScalar scalar);
  void push(FxWord word);
  void apply(FxCodeOp op);
  FxWord take(FxScalarType type);
  // False where it cannot be said; what was pushed is then of no use.
  bool push_tensor_bytes(const Tensor& tensor);
  bool push_room_bytes(const SizeSource& source);
  bool push_recorded_bytes(const SizeSource& source);

  const Module& module_;
  Plan& plan_;
  HashMap<StringId, FxWord> symbols_;
  HashMap<StringId, uint32_t> rows_;  // of the module's symbols
  IdMap<ExprId, FxWord> words_;
  std::vector<FxCode> pending_;
  std::map<std::vector<uint64_t>, FxWord> by_code_;
};

}  // namespace fxopt
