#pragma once

#include <optional>
#include <vector>

#include "ir/alias/storages.h"
#include "ir/graph/graph.h"
#include "ir/step/phases.h"

// The values that CPU offload moved off the device, and the backward nodes that reload them.
//
//   %c = ao.offload(%f)           # forward
//   %h = ao.wait_tensor(%c, ...)  # forward; after this wait, %f is freed
//   %r = ao.reload(%h)            # backward
//   %b = ao.wait_tensor(%r)       # backward; %b has the same values as %f
//
// When `remat` copies a consumer of %f, the copy must read %b.

namespace fxopt {

class Reloads {
 public:
  Reloads(const Graph& graph, const PhaseMap& phases, const StorageMap& storages);

  // Returns the backward wait that replaces the offloaded `node`. Invalid if `node` is not
  // offloaded. O(1).
  NodeId of(NodeId node) const { return waits_.get(node); }
  // Returns the offloaded value whose memory `node` shares or may share. Invalid if no such value
  // exists, or if `node` itself is an offloaded value.
  NodeId offloaded_under(NodeId node) const;
  // Returns the offloaded value that owns `buffer`. Invalid if no such value exists.
  NodeId offloaded_on(BufferId buffer) const { return owners_.get(buffer); }
  // Whether `node` is an offload that leads to a reload, or the wait for that offload. These nodes
  // must not be repeated.
  bool is_offload(NodeId node) const { return offloads_.get(node); }
  bool empty() const { return empty_; }

  // Returns the nodes that must move before `reader`, so that the reload of `offloaded` is complete
  // before `reader`. These nodes are the ao.reload call and the wait for it, in this order, without
  // nodes that are already before `reader`. Returns std::nullopt if one of these nodes cannot move
  // before `reader`, because it is `reader` itself or has several inputs. O(1).
  std::optional<std::vector<NodeId>> to_hoist(NodeId offloaded, NodeId reader) const;

 private:
  const Graph& graph_;
  const StorageMap& storages_;
  IdMap<NodeId, NodeId> waits_{graph_.num_ids()};             // offloaded value -> its wait in backward
  IdMap<BufferId, NodeId> owners_{storages_.num_buffers()};   // memory of an offloaded value -> the value
  IdMap<BufferId, NodeId> classes_{storages_.num_buffers()};  // alias class -> an offloaded value in it
  IdMap<NodeId, bool> offloads_{graph_.num_ids(), false};
  bool empty_ = true;
};

}  // namespace fxopt
