#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/alias/effect_map.h"
#include "ir/alias/storages.h"
#include "ir/graph/graph.h"
#include "ir/graph/types.h"

// Which nodes must stay before which, and why: the one answer for whoever moves nodes.

namespace fxopt {

// Why a node must follow another.
enum class DependenceKind : uint8_t {
  kValue,       // it reads what the other makes
  kStorage,     // one of the two writes memory that the other reads or writes
  kMetadata,    // one of the two changes sizes, strides or storage of a tensor that the other is given
  kRandom,      // both draw from generators
  kCollective,  // both are issued on one group, or on one that cannot be told
  kEffect,      // one of the two may do anything, and the other has effects
  kMode,        // one of the two changes gradient mode or autocast
  kEvent,       // one of the two records events or waits for one, on one stream
  kControl,     // a control dependency
  kBoundary,    // placeholders come first and in order, the output last
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
  NodeId on;  // the node that comes first
  DependenceKind why;
  bool operator==(const Dependence&) const = default;
};

// The dependences of one graph, as its schedule has them: a schedule keeps what the graph computes, gives the caller and
// issues, bit by bit, when every node comes after all it depends on. They stay true of every such schedule, so one map
// serves many moves; other changes of the graph end it.
//
// Storage    Memory has versions, by alias class: a write makes one, a node that reads data reads the last. A wait makes
//            one too (what a collective has written is there only then), and until then the collective reads its inputs.
// Metadata   likewise, by class of tensor objects: every node that is given a tensor reads it.
// Random     Draws keep their order, but for those whose place in a slot is recorded.
// Effect     An op that nobody described, or a barrier: no draw, write, collective, wait or assertion crosses it.
//
// Of dependences that follow from others, some are left out. Built in O(nodes + edges + tensors), and for a write to
// what several asynchronous collectives read, their waits.
class DependenceMap {
 public:
  DependenceMap(const Graph& graph, EffectMap& effects, const StorageMap& storages);

  // What `node` must follow, each node once, in the order of the kinds. But for kBoundary, which range() and
  // violation() ask of the kinds of nodes.
  std::span<const Dependence> of(NodeId node) const { return slice(dependences_, own_.get(node)); }
  // What must follow `node`; Dependence::on is the node that comes later. In schedule order.
  std::span<const Dependence> followers(NodeId node) const { return slice(followers_, of_followers_.get(node)); }

  // What stands against moving `node` right before `before` (invalid: to the end) in the present schedule: the nearest
  // node that it would cross and must not. Nothing: it may move. Placeholders and the output do not. O(dependences of the
  // node).
  std::optional<Dependence> obstacle(NodeId node, NodeId before) const;
  bool can_move(NodeId node, NodeId before) const { return !obstacle(node, before).has_value(); }

  // The nearest nodes that the node must stay after and before, those that hold it at the ends of the graph included.
  // O(dependences of the node).
  struct Range {
    std::optional<Dependence> after, before;
  };
  Range range(NodeId node) const;

  // A node of `order`, which holds every node of the graph once, that comes before one it must follow. O(nodes +
  // dependences).
  struct Violation {
    NodeId node;
    Dependence dependence;
  };
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
  NodeId inputs_end_;  // the last placeholder before any call
};

}  // namespace fxopt
