#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/step/phases.h"

namespace fxopt {

// A property of a graph about which fxopt always warns the user. `code` is a stable word with
// dashes.
struct GraphDoubt {
  std::string_view code;
  NodeId node;  // the first node that has the property
  std::string text;
};

// Returns the doubts about a graph in this order, each at most once:
//
//   phase-overruled  Nodes are marked backward, but a forward output depends on them. Autograd
//                    inside forward can cause such marks.
//   drawn-twice      Backward repeats a random draw of forward from the same inputs. No slot is
//                    recorded for the draw, so the numbers differ. Eager checkpointing causes this
//                    difference if it does not keep the generator's state.
//   region-inputs    Several inputs are recorded on one storage. PyTorch records results of a
//                    region in this way if the region is called more than once. Each of these
//                    inputs is counted as memory of its own.
//
// `storages` is called only if draws are compared. O(nodes + edges).
std::vector<GraphDoubt> find_doubts(const Graph& graph, const PhaseMap& phases, const StorageSource& storages);

}  // namespace fxopt
