#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/alias/effect_map.h"
#include "ir/alias/storages.h"
#include "ir/graph/graph.h"
#include "ir/graph/types.h"

// The constraints on the order of nodes, and the reason for each constraint. Every pass that moves
// nodes uses DependenceMap.

namespace fxopt {

// Why a node must follow another node.
enum class DependenceKind : uint8_t {
  kValue,       // the node reads the other node's result
  kStorage,     // one node writes memory that the other node reads or writes
  kMetadata,    // one node changes sizes, strides or storage of an operand of the other node
  kRandom,      // both nodes draw random numbers
  kCollective,  // both nodes are issued on one group, or the group of one node is unknown
  kEffect,      // one node may do anything, and the other node has effects
  kMode,        // one node changes gradient mode or autocast
  kEvent,       // one node has stream events; the other node has events or is on the same stream
  kControl,     // a control dependency
  kBoundary,    // placeholders come first and in order, and the output comes last
};
template <>
struct EnumNames<DependenceKind> {
  static constexpr EnumName<DependenceKind> kAll[] = {{DependenceKind::kValue, "value"},
                                                      {DependenceKind::kStorage, "storage"},
                                                      {DependenceKind::kMetadata, "metadata"},
                                                      {DependenceKind::kRandom, "random"},
                                                      {DependenceKind::kCollective, "collective"},
                                                      {DependenceKind::kEffect, "effect"},
                                                      {DependenceKind::kMode, "mode"},
                                                      {DependenceKind::kEvent, "event"},
                                                      {DependenceKind::kControl, "control"},
                                                      {DependenceKind::kBoundary, "boundary"}};
};

struct Dependence {
  NodeId on;  // the earlier node; in followers(), the later node
  DependenceKind why;
  bool operator==(const Dependence&) const = default;
};

// The dependences between the nodes of one graph, derived from the present schedule. A schedule
// respects the dependences if every node comes after all nodes that it depends on. Every schedule
// that respects the dependences computes and returns the same bits, and issues the same
// collectives. The map stays valid after a move that respects the dependences. Any other change of
// the graph invalidates the map.
//
// Storage:   The memory of each alias class has versions. A write creates a version. A node that
//            reads data reads the last version. A wait also creates a version, because a
//            collective's result is available only after the wait. Before the wait, the collective
//            may read its inputs.
// Metadata:  The metadata of each class of tensor objects has versions in the same way. Every node
//            that takes a tensor reads the tensor's metadata.
// Random:    Random draws keep their order. Draws whose offset in an RngSlot is recorded may change
//            places.
// Effect:    A barrier, or an op with unknown effects, keeps its place relative to all draws,
//            writes, collectives, waits, assertions and mode changes.
//
// Some dependences that follow from other dependences are left out. Construction takes O(nodes +
// edges + tensors). If several asynchronous collectives read the same memory, each write to this
// memory takes additional time, in proportion to the number of these collectives.
class DependenceMap {
 public:
  DependenceMap(const Graph& graph, EffectMap& effects, const StorageMap& storages);

  // Returns the nodes that `node` must follow. Each node is listed once, in the order of
  // DependenceKind. kBoundary is left out, because range() and violation() derive it from the kinds
  // of nodes.
  std::span<const Dependence> of(NodeId node) const { return slice(dependences_, own_.get(node)); }
  // Returns the nodes that must follow `node`, in schedule order. In this list, Dependence::on is
  // the node that must follow `node`.
  std::span<const Dependence> followers(NodeId node) const { return slice(followers_, of_followers_.get(node)); }

  // Returns the nearest node that `node` must not cross on its way to the place right before
  // `before`. If `before` is invalid, `node` moves to the end. Returns nothing if `node` may move.
  // Placeholders and the output may not move. O(dependences of the node).
  std::optional<Dependence> obstacle(NodeId node, NodeId before) const;
  bool can_move(NodeId node, NodeId before) const { return !obstacle(node, before).has_value(); }

  // The limits within which range()'s `node` may move. `node` must stay after the node `after->on`
  // and before the node `before->on`. These two are the nearest such nodes in the schedule. A
  // member is absent if its side has no limit. Dependences of the kind kBoundary are included.
  // O(dependences of the node).
  struct Range {
    std::optional<Dependence> after, before;
  };
  Range range(NodeId node) const;

  // A dependence that an order of nodes violates: the order places `node` before the node
  // `dependence.on`, but `node` must follow that node.
  struct Violation {
    NodeId node;
    Dependence dependence;
  };
  // Returns a dependence that `order` violates. Returns nothing if `order` respects all
  // dependences. `order` contains every node of the graph once. O(nodes + dependences).
  std::optional<Violation> violation(std::span<const NodeId> order) const;

 private:
  class Builder;

  struct Slice {
    uint32_t first = 0;
    uint32_t count = 0;
  };
  static std::span<const Dependence> slice(const std::vector<Dependence>& all, Slice of) {
    return std::span(all).subspan(of.first, of.count);
  }
  void find_followers();

  const Graph* graph_;
  std::vector<Dependence> dependences_, followers_;
  IdMap<NodeId, Slice> own_, of_followers_;
  NodeId inputs_end_;  // the last placeholder that precedes the first call
};

}  // namespace fxopt
