#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/alias/storages.h"
#include "ir/graph/graph.h"
#include "ir/step/phases.h"

namespace fxopt {

// What is live while forward and then backward run, when backward computes some values of forward again right before the first
// node that needs them: bytes of what the nodes make and of copies, each until its last reader. What the caller brings is left out.
class StepMemory {
 public:
  // `bytes_of` a storage; asked once for each. Refers to what it is given.
  StepMemory(const Graph& graph, const PhaseMap& phases, const StorageMap& storages,
             const std::function<int64_t(BufferId)>& bytes_of);

  struct Copy {
    NodeId node;                   // that is computed again
    uint32_t first = 0, last = 0;  // places in the step between which its storages live
    int64_t bytes = 0;
  };
  struct Profile {
    int64_t peak = 0;
    uint32_t place = 0;        // in the step, where the peak is first reached
    std::vector<Copy> copies;  // in the order they are made
  };
  uint32_t num_places_of_backward() const { return static_cast<uint32_t>(order_.size()) - first_of_backward_; }
  // Of a step whose backward computes again what `is_again` says of forward values. O(nodes + edges).
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
