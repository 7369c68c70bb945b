#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/hash.h"
#include "ir/graph/graph.h"
#include "ir/ops/op.h"

namespace fxopt {

// Facts about one operator that the equivalence prover derives from the operator's name or schema.
// The facts are computed once for each operator.
struct CallRule {
  enum class Special : uint8_t {
    kNone,
    // An operator from kSize through kElements returns a property of a tensor (argument 0). It does
    // not read the bytes of this tensor.
    kSize,
    kStride,
    kOffset,
    kElements,
    kView,  // same result as `reshape`, but raises an error if `reshape` would copy
    kReshape,
    kConcatenation,
    kCopy,
    kOffload,
    kReload,
    kFull,
    kScalarTensor,  // the same as `full` with an empty size
    kClone,
    kSum,  // a tensor plus or minus a number; the number may be 0
  };
  const Op* op = nullptr;
  Special special = Special::kNone;
  Hash128 target;                               // hash of the name; all forms of `reshape` share it
  std::vector<Hash128> names;                   // hashes of the names of the schema's arguments
  std::vector<std::vector<uint64_t>> defaults;  // default values, as input of make_key()
  bool hands_back = false;                      // whether a result may alias an argument

  // The operator writes neither memory nor metadata of its arguments, and its result shares no
  // memory with other tensors. The flag ignores other effects, such as random draws.
  bool only_computes = false;
  bool makes_view = false;       // the result is always a new view, never the argument's object
  bool sees_storage = false;     // the result depends on a tensor's storage, not only its elements
  bool has_own_effects = false;  // every call of the operator has the same effects, whatever its arguments are
  // The contents of the operands may decide how many random numbers a call draws, or whether the
  // call raises an error.
  bool draws_by_data = false;

  bool is_reshape() const { return special == Special::kView || special == Special::kReshape; }
  bool is_fill() const { return special == Special::kFull || special == Special::kScalarTensor; }
  bool asks_size() const { return special >= Special::kSize && special <= Special::kElements; }
};

// The CallRule of every operator that a module calls. Operators that are added to the module later
// are included.
class CallRules {
 public:
  // Returns the rule of the called operator. O(1), except for the first call of an operator. The
  // reference is valid as long as this object lives.
  const CallRule& of(const Graph& graph, NodeId node) {
    const TargetId target = graph[node].is_call() ? graph[node].target : TargetId();
    const size_t place = target.is_valid() ? target.index() + 1 : 0;
    return place < rules_.size() && rules_[place] != nullptr ? *rules_[place] : add(graph, node, place);
  }

 private:
  const CallRule& add(const Graph& graph, NodeId node, size_t place);

  // Entry 0 is the rule for all nodes that call no target. Entry 1 + i is the rule of the target
  // with index i, or null if this rule is not computed yet.
  std::vector<std::unique_ptr<const CallRule>> rules_;
};

}  // namespace fxopt
