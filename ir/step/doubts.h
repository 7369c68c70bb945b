#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/step/phases.h"

namespace fxopt {

// A property of a graph that its user should know about, whatever is done with it. `code` is stable
// and dashed.
struct GraphDoubt {
  std::string_view code;
  NodeId node;  // the first node concerned
  std::string text;
};

// In this order, each at most once:
//
//   phase-overruled  nodes are marked backward, but an output of forward depends on them (autograd
//                    inside forward)
//   drawn-twice      backward draws again from the same inputs as forward, without a recorded slot,
//                    so the numbers differ: eager checkpointing does this if it does not keep the
//                    generator's state
//   region-inputs    inputs are recorded on one storage, as PyTorch records results of a region
//                    that is called more than once. Each is counted as memory of its own
//
// `storages` is called only if draws are compared. O(nodes + edges).
std::vector<GraphDoubt> find_doubts(const Graph& graph, const PhaseMap& phases, const StorageSource& storages);

}  // namespace fxopt
