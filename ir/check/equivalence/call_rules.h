#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/hash.h"
#include "ir/graph/graph.h"
#include "ir/ops/op.h"

namespace fxopt {

// Facts about one operator that the prover derives from the operator's name or schema. The facts
// are computed once for each operator.
struct CallRule {
  enum class Special : uint8_t {
    kNone,
    kSize,  // kSize to kElements query argument 0, a tensor, without reading its bytes
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
  Hash128 target;                               // all forms of `reshape` share one name
  std::vector<Hash128> names;                   // names of the schema's arguments
  std::vector<std::vector<uint64_t>> defaults;  // key words of the arguments' default values
  bool hands_back = false;                      // whether a result may alias an argument

  // The operator writes no memory and changes no state, and the operator's result shares no memory
  // with other tensors. The flag applies only to calls without effects.
  bool only_computes = false;
  bool makes_view = false;       // the result is always a new view, never the argument's object
  bool sees_storage = false;     // the result depends on a tensor's storage, not only its elements
  bool has_own_effects = false;  // all calls of the operator have the same effects
  bool draws_by_data = false;    // contents of operands may decide the number of draws or an error

  bool is_reshape() const { return special == Special::kView || special == Special::kReshape; }
  bool is_fill() const { return special == Special::kFull || special == Special::kScalarTensor; }
  bool asks_size() const { return special >= Special::kSize && special <= Special::kElements; }
};

// The rules of all targets of one module. The class also covers targets that are added to the
// module later.
class CallRules {
 public:
  // Returns the rule of the call. O(1), except for the first call of a target. The reference is
  // valid as long as this object lives.
  const CallRule& of(const Graph& graph, NodeId node) {
    const TargetId target = graph[node].is_call() ? graph[node].target : TargetId();
    const size_t place = target.is_valid() ? target.index() + 1 : 0;
    return place < rules_.size() && rules_[place] != nullptr ? *rules_[place] : add(graph, node, place);
  }

 private:
  const CallRule& add(const Graph& graph, NodeId node, size_t place);

  // Rules by target. The first entry is one rule for all nodes that are not calls with a target. A
  // null entry is not computed yet.
  std::vector<std::unique_ptr<const CallRule>> rules_;
};

}  // namespace fxopt
