#pragma once

#include <optional>
#include <vector>

#include "ir/alias/storages.h"
#include "ir/graph/graph.h"
#include "ir/step/phases.h"

// Values that CPU offload took off the device, and where backward has them again.
//
//   %c = ao.offload(%f)     %h = ao.wait_tensor(%c, ...)     forward; the memory of %f is gone behind the wait
//   %r = ao.reload(%h)      %b = ao.wait_tensor(%r)          backward
//
// A copy that remat makes of a reader of %f must read %b.

namespace fxopt {

class Reloads {
 public:
  Reloads(const Graph& graph, const PhaseMap& phases, const StorageMap& storages);

  // The wait in backward that stands for offloaded `node`; invalid for other nodes. O(1).
  NodeId of(NodeId node) const { return waits_.get(node); }
  // The offloaded value on whose memory `node` is, or may be, another tensor; invalid when there is none.
  NodeId offloaded_under(NodeId node) const;
  // The offloaded value that owns `buffer`; invalid when there is none.
  NodeId offloaded_on(BufferId buffer) const { return owners_.get(buffer); }
  // Whether `node` is on the way to what is reloaded: an offload or its wait. Those are not to be repeated.
  bool is_offload(NodeId node) const { return offloads_.get(node); }
  bool empty() const { return empty_; }

  // What must move before `reader`, in order, for it to read the reload of `offloaded`; nothing when that is impossible
  // because the reload waits for more than its offload, or leads to `reader`. O(1).
  std::optional<std::vector<NodeId>> to_hoist(NodeId offloaded, NodeId reader) const;

 private:
  const Graph& graph_;
  const StorageMap& storages_;
  IdMap<NodeId, NodeId> waits_;      // offloaded value -> its wait in backward
  IdMap<BufferId, NodeId> owners_;   // its memory -> the value
  IdMap<BufferId, NodeId> classes_;  // alias class -> an offloaded value in it
  IdMap<NodeId, bool> offloads_;
  bool empty_ = true;
};

}  // namespace fxopt
