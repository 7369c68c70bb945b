#pragma once

#include <optional>
#include <vector>

#include "ir/alias/storages.h"
#include "ir/graph/graph.h"
#include "ir/step/phases.h"

// Values that CPU offload moved off the device, and the backward nodes that bring them back.
//
//   %c = ao.offload(%f)     %h = ao.wait_tensor(%c, ...)     forward; frees %f after the wait
//   %r = ao.reload(%h)      %b = ao.wait_tensor(%r)          backward
//
// When remat copies a consumer of %f, the copy must read %b.

namespace fxopt {

class Reloads {
 public:
  Reloads(const Graph& graph, const PhaseMap& phases, const StorageMap& storages);

  // The backward wait that replaces the offloaded `node`; invalid for other nodes. O(1).
  NodeId of(NodeId node) const { return waits_.get(node); }
  // The offloaded value whose memory another tensor `node` shares, or may share; invalid if none
  // exists.
  NodeId offloaded_under(NodeId node) const;
  // The offloaded value that owns `buffer`; invalid if none exists.
  NodeId offloaded_on(BufferId buffer) const { return owners_.get(buffer); }
  // Whether `node` is an offload or its wait, on the way to a reload. Those must not be repeated.
  bool is_offload(NodeId node) const { return offloads_.get(node); }
  bool empty() const { return empty_; }

  // The nodes that must move before `reader`, in order, so that it reads the reload of `offloaded`.
  // Nothing if that is impossible: the reload waits for more than its offload, or leads to
  // `reader`. O(1).
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
