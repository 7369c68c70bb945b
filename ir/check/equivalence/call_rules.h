#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/hash.h"
#include "ir/graph/graph.h"
#include "ir/ops/op.h"

namespace fxopt {

// The prover's facts about one operator, from its name or its schema. Computed once per operator.
struct CallRule {
  enum class Special : uint8_t {
    kNone,
    kSize,  // queries of argument 0, a tensor whose bytes are not read
    kStride,
    kOffset,
    kElements,
    kView,  // same result as `reshape`, but raises if that copies
    kReshape,
    kConcatenation,
    kCopy,
    kOffload,
    kReload,
    kFull,
    kScalarTensor,  // `full` with an empty size
    kClone,
    kSum,  // tensor plus or minus a number, which may be 0
  };
  const Op* op = nullptr;
  Special special = Special::kNone;
  Hash128 target;                               // one for all forms of `reshape`
  std::vector<Hash128> names;                   // the schema's arguments
  std::vector<std::vector<uint64_t>> defaults;  // key words of the schema's defaults
  bool hands_back = false;                      // a result may alias an argument

  // Writes and changes nothing, and its result shares memory with nothing, unless its effects
  // differ.
  bool only_computes = false;
  bool makes_view = false;       // never returns the argument itself
  bool sees_storage = false;     // depends on more of a tensor than its elements
  bool has_own_effects = false;  // every call has the effects of the operator
  bool draws_by_data = false;    // number of draws, or an error, may depend on contents

  bool is_reshape() const { return special == Special::kView || special == Special::kReshape; }
  bool is_fill() const { return special == Special::kFull || special == Special::kScalarTensor; }
  bool asks_size() const { return special >= Special::kSize && special <= Special::kElements; }
};

// The rules of all targets of one module. Follows the module as it grows.
class CallRules {
 public:
  // Returns the rule of the call. O(1), except for the first call of a target. The reference is
  // valid as long as this object.
  const CallRule& of(const Graph& graph, NodeId node) {
    const TargetId target = graph[node].is_call() ? graph[node].target : TargetId();
    const size_t place = target.is_valid() ? target.index() + 1 : 0;
    return place < rules_.size() && rules_[place] != nullptr ? *rules_[place] : add(graph, node, place);
  }

 private:
  const CallRule& add(const Graph& graph, NodeId node, size_t place);

  // By target, after one rule shared by all nodes that are not calls with a target. Null: not
  // computed yet.
  std::vector<std::unique_ptr<const CallRule>> rules_;
};

}  // namespace fxopt
