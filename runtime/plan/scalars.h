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

// The scalars of a plan: symbols from the point where they become known, and values computed from
// them.
//
// Each distinct expression has one scalar, whose code pushes the scalars of its operands. The
// number of instructions equals the number of nodes in the expressions, however often they are
// used.
class ScalarBuilder {
 public:
  ScalarBuilder(const Module& module, Plan& plan);

  // Returns an expression or a size as a word: a number, or a scalar. Returns kNoWord if a symbol
  // in it is not bound, or if it has an unknown function. O(nodes of the expression that were not
  // seen before).
  FxWord of(ExprId expr);
  FxWord of(const Dim& dim);

  // Binds a symbol, which becomes known from a size of an input, as an input, or after `ready`
  // steps. Returns its scalar. The symbol must not be bound. O(1).
  FxWord bind_dim(StringId symbol, uint32_t tensor, uint32_t dim);
  FxWord bind_input(StringId symbol, FxScalarType type);
  FxWord bind_step(StringId symbol, FxScalarType type, uint32_t ready);
  FxWord bind_outer(StringId symbol);
  // Adds a scalar without a symbol: a result of a step.
  FxWord add_step(FxScalarType type, uint32_t ready);
  bool is_bound(StringId symbol) const { return symbols_.find(symbol) != symbols_.end(); }

  // Returns the symbol if the expression is exactly one symbol; otherwise an invalid id.
  StringId symbol_of(ExprId expr) const;
  StringId symbol_of(const Dim& dim) const { return dim.is_static() ? StringId() : symbol_of(dim.expr); }

  // Returns the bytes of a storage, see evaluate_size(), or kNoWord if they cannot be expressed.
  // Not for kLike. O(rank).
  FxWord bytes_of(const SizeSource& source);

  // Returns the number of steps after which the word is known; 0 for a number.
  uint32_t ready(FxWord word) const;

 private:
  using Operands = std::vector<FxWord>;

  FxWord make(ExprId expr);
  // Binds a symbol that is the rank itself; kNoWord for any other symbol.
  FxWord bind_rank(StringId symbol);
  FxWord compute(FxCodeOp op, std::span<const FxWord> operands);
  FxWord add(FxScalar scalar);
  FxWord bind(StringId symbol, FxScalar scalar);
  void push(FxWord word);
  void apply(FxCodeOp op);
  FxWord take(FxScalarType type);
  // Returns false if the size cannot be expressed; the code pushed so far is then useless.
  bool push_tensor_bytes(const Tensor& tensor);
  bool push_room_bytes(const SizeSource& source);
  bool push_recorded_bytes(const SizeSource& source);

  const Module& module_;
  Plan& plan_;
  HashMap<StringId, FxWord> symbols_;
  HashMap<StringId, uint32_t> rows_;  // rows of the module's symbols
  IdMap<ExprId, FxWord> words_;
  std::vector<FxCode> pending_;
  std::map<std::vector<uint64_t>, FxWord> by_code_;
};

}  // namespace fxopt
