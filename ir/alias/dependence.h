#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/alias/effect_map.h"
#include "ir/alias/storages.h"
#include "ir/graph/graph.h"
#include "ir/graph/types.h"

// Which nodes must stay before which, and why. Every pass that moves nodes asks here.

namespace fxopt {

// Why a node must follow another.
enum class DependenceKind : uint8_t {
  kValue,       // it reads the other's result
  kStorage,     // one writes memory that the other reads or writes
  kMetadata,    // one changes sizes, strides or storage of a tensor that the other is given
  kRandom,      // both draw random numbers
  kCollective,  // both are issued on one group, or one group is unknown
  kEffect,      // one may do anything, and the other has effects
  kMode,        // one changes gradient mode or autocast
  kEvent,       // one records events or waits for one, and the other does so or is on its stream
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

// The dependences of one graph in its present schedule. A schedule in which every node comes after
// all its dependences preserves, bit by bit, all that the graph computes, returns to the caller and
// issues. The dependences hold in every such schedule, so one map serves many moves. Any other
// change of the graph invalidates it.
//
// Storage    Memory has versions, by alias class: a write makes one, and a node that reads data
//            reads the last. A wait makes one as well, because a collective's result is there only
//            then. Until the wait, the collective reads its inputs.
// Metadata   Likewise, by class of tensor objects: every node that is given a tensor reads it.
// Random     Draws keep their order, except those whose place in a slot is recorded.
// Effect     No draw, write, collective, wait, assertion or mode change crosses an undescribed op
//            or a barrier.
//
// Some dependences that follow from others are left out. Built in O(nodes + edges + tensors), plus,
// for each write to memory that several asynchronous collectives read, their waits.
class DependenceMap {
 public:
  DependenceMap(const Graph& graph, EffectMap& effects, const StorageMap& storages);

  // The nodes that `node` must follow, each once, in the order of the kinds. Without kBoundary,
  // which range() and violation() derive from the kinds of nodes.
  std::span<const Dependence> of(NodeId node) const { return slice(dependences_, own_.get(node)); }
  // The nodes that must follow `node`, in schedule order. Dependence::on is the later node.
  std::span<const Dependence> followers(NodeId node) const { return slice(followers_, of_followers_.get(node)); }

  // The obstacle to moving `node` right before `before` (invalid: to the end) in the present
  // schedule: the nearest node that it would cross and must not. Nothing if it may move.
  // Placeholders and the output may not. O(dependences of the node).
  std::optional<Dependence> obstacle(NodeId node, NodeId before) const;
  bool can_move(NodeId node, NodeId before) const { return !obstacle(node, before).has_value(); }

  // The nearest nodes that the node must stay after and before, including those that bound the
  // graph (kBoundary). O(dependences of the node).
  struct Range {
    std::optional<Dependence> after, before;
  };
  Range range(NodeId node) const;

  // Returns a node of `order` that comes before one it must follow, if any. `order` holds every
  // node of the graph once. O(nodes + dependences).
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
