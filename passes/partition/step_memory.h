#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/alias/storages.h"
#include "ir/graph/graph.h"
#include "ir/step/phases.h"

namespace fxopt {

// The live memory of a training step, while forward and then backward run. Backward recomputes some
// forward values, each directly before the first node that needs it. The bytes of a result or copy
// are live until its last consumer. Inputs and other memory that the caller of the step holds are
// not included.
class StepMemory {
 public:
  // Calls `bytes_of` once for each storage. Keeps references to the other arguments.
  StepMemory(const Graph& graph, const PhaseMap& phases, const StorageMap& storages,
             const std::function<int64_t(BufferId)>& bytes_of);

  struct Copy {
    NodeId node;  // the recomputed node
    // The first and the last place in the step at which the storages of the copy are live. A place
    // is an index into the list of calls: first the calls of forward, then the calls of backward.
    uint32_t first = 0, last = 0;
    int64_t bytes = 0;
  };
  struct Profile {
    int64_t peak = 0;
    // The place in the step at which the peak is first reached.
    uint32_t place = 0;
    std::vector<Copy> copies;  // ordered by `first`
  };
  uint32_t num_places_of_backward() const { return static_cast<uint32_t>(order_.size()) - first_of_backward_; }
  // Profiles a step whose backward recomputes the forward values in `is_again`. O(nodes + edges).
  Profile profile(const IdMap<NodeId, bool>& is_again) const;

 private:
  // For each storage, the place of its last consumer. The map `of_value` is for storages of
  // original forward values and of backward results. The map `of_copy` is for storages of copies.
  struct LastUses {
    IdMap<BufferId, uint32_t> of_value, of_copy;
  };
  LastUses place_copies(const IdMap<NodeId, bool>& is_again, std::vector<Copy>& copies) const;
  // Returns the change of live bytes at each place, with one more element at the end. Sets the
  // fields Copy::last and Copy::bytes in `copies`.
  std::vector<int64_t> live_changes(const LastUses& last, std::vector<Copy>& copies) const;

  const Graph& graph_;
  const PhaseMap& phases_;
  const StorageMap& storages_;
  IdMap<BufferId, int64_t> bytes_;
  std::vector<NodeId> order_;  // the calls of forward, then the calls of backward
  uint32_t first_of_backward_ = 0;
  std::vector<NodeId> returned_;
};

}  // namespace fxopt
