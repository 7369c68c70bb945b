#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/alias/storages.h"
#include "ir/graph/graph.h"
#include "ir/step/phases.h"

namespace fxopt {

// Live memory while forward and then backward run, if backward recomputes some forward values
// directly before the first node that needs them. Counts bytes of results and of copies, each until
// its last consumer. Leaves out the caller's memory.
class StepMemory {
 public:
  // `bytes_of` a storage is called once per storage. Keeps references to the arguments.
  StepMemory(const Graph& graph, const PhaseMap& phases, const StorageMap& storages,
             const std::function<int64_t(BufferId)>& bytes_of);

  struct Copy {
    NodeId node;                   // the recomputed node
    uint32_t first = 0, last = 0;  // places in the step between which its storages are live
    int64_t bytes = 0;
  };
  struct Profile {
    int64_t peak = 0;
    uint32_t place = 0;        // in the step, at which the peak is first reached
    std::vector<Copy> copies;  // in the order of their creation
  };
  uint32_t num_places_of_backward() const { return static_cast<uint32_t>(order_.size()) - first_of_backward_; }
  // Profiles a step whose backward recomputes the forward values in `is_again`. O(nodes + edges).
  Profile profile(const IdMap<NodeId, bool>& is_again) const;

 private:
  const Graph& graph_;
  const PhaseMap& phases_;
  const StorageMap& storages_;
  IdMap<BufferId, int64_t> bytes_;
  std::vector<NodeId> order_;  // calls of forward, then of backward
  uint32_t first_of_backward_ = 0;
  std::vector<NodeId> returned_;
};

}  // namespace fxopt
