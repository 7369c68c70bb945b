#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/hash.h"
#include "ir/graph/graph.h"
#include "ir/ops/op.h"

namespace fxopt {

// What the prover knows of one operator by its name, or looks up in its schema for every call: found out once.
struct CallRule {
  enum class Special : uint8_t {
    kNone,
    kSize,  // questions about argument 0, a tensor whose bytes are not read
    kStride,
    kOffset,
    kElements,
    kView,  // it shows what `reshape` shows, and raises where that copies
    kReshape,
    kConcatenation,
    kCopy,
    kOffload,
    kReload,
    kFull,
    kScalarTensor,  // `full` of no sizes
    kClone,
    kSum,  // of a tensor and a number, which may be 0
  };
  const Op* op = nullptr;
  Special special = Special::kNone;
  Hash128 target;                               // what calls are named by; one for all that show what `reshape` shows
  std::vector<Hash128> names;                   // of the schema's arguments
  std::vector<std::vector<uint64_t>> defaults;  // of the schema's arguments, as they would be named; empty: none
  bool hands_back = false;                      // the schema says that a result is an argument or shares memory with it

  // It writes and changes nothing, and what it gives shares memory with nothing: unless its effects say otherwise.
  bool only_computes = false;
  bool makes_view = false;       // never its argument itself
  bool sees_storage = false;     // it looks at more of a tensor than its elements
  bool has_own_effects = false;  // every call of it has those of the operator
  bool draws_by_data = false;    // how much it draws, or whether it raises, may hang on what its tensors hold

  bool is_reshape() const { return special == Special::kView || special == Special::kReshape; }
  bool is_fill() const { return special == Special::kFull || special == Special::kScalarTensor; }
  bool asks_size() const { return special >= Special::kSize && special <= Special::kElements; }
};

// Of the targets of one module, as it grows.
class CallRules {
 public:
  // Of that call. O(1), but for the first one of its target. Good as long as this is.
  const CallRule& of(const Graph& graph, NodeId node) {
    const TargetId target = graph[node].is_call() ? graph[node].target : TargetId();
    const size_t place = target.is_valid() ? target.index() + 1 : 0;
    return place < rules_.size() && rules_[place] != nullptr ? *rules_[place] : add(graph, node, place);
  }

 private:
  const CallRule& add(const Graph& graph, NodeId node, size_t place);

  // By target, after that of all calls of something else; null: not known yet.
  std::vector<std::unique_ptr<const CallRule>> rules_;
};

}  // namespace fxopt
