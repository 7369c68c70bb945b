#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/step/phases.h"

namespace fxopt {

// A property of a graph about which fxopt always warns the user. `code` is the stable name of the
// warning, such as "drawn-twice".
struct GraphDoubt {
  std::string_view code;
  NodeId node;  // the first node that has the property
  std::string text;
};

// Returns the doubts about a graph in this order, each at most once:
//
//   phase-overruled: Nodes have the phase mark backward, but a forward output depends on these
//                    nodes. Autograd inside forward can cause these marks.
//   drawn-twice:     A random call in backward has the same operator and equal inputs as a random
//                    call in forward. Calls without inputs are not compared. Neither call has a
//                    recorded generator offset (RngUse::offset), so the calls return different
//                    numbers. Eager checkpointing causes this difference if it does not restore the
//                    generator's state.
//   region-inputs:   The file records one storage for several inputs. PyTorch does so for results
//                    of a graph that is called once for each layer (nested_compile_region, see
//                    ir/alias/regions.h). fxopt counts separate memory for each of these inputs.
//
// `storages` is called only if random calls are compared. O(nodes + edges).
std::vector<GraphDoubt> find_doubts(const Graph& graph, const PhaseMap& phases, const StorageSource& storages);

}  // namespace fxopt
