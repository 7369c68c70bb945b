#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/step/phases.h"

namespace fxopt {

// Something a graph shows that its user should know whatever is done with it. `code` is stable and dashed.
struct GraphDoubt {
  std::string_view code;
  NodeId node;  // the first it is about
  std::string text;
};

// In this order, each once at most:
//
//   phase-overruled  nodes are marked backward, and an output of forward depends on them (autograd inside forward)
//   drawn-twice      backward draws again what forward drew from the same inputs, without a recorded slot, so with other numbers: what
//                    eager checkpointing leaves where the generator's state is not kept
//   region-inputs    inputs are recorded on one storage, as PyTorch records results of a region that is called more than once: each is
//                    counted as memory of its own
//
// `storages` are asked for where draws are compared. O(nodes + edges).
std::vector<GraphDoubt> find_doubts(const Graph& graph, const PhaseMap& phases, const StorageSource& storages);

}  // namespace fxopt
