#pragma once

#include <cstdint>
#include <vector>

#include "core/min_cut.h"
#include "core/result.h"
#include "ir/graph/graph.h"

namespace fxopt {

// What forward saves for backward, as a minimal cut. Each value is two vertices with an arc between them, whose capacity is
// what saving it costs: what lies before the arc is computed by forward alone, what lies after it again by backward.
//
//   source -> in      backward must not compute it again
//   in     -> sink    backward must compute it, by itself or again
//   in     -> out     the cost of saving it
//   out    -> in      of each of its readers
//   out    -> sink    backward must have it, saved or computed again
//
// Who decides which of these a value gets is another matter (choice.h).
class SaveNetwork {
 public:
  static constexpr int64_t kNever = Arc::kNoLimit;  // the cost of what cannot be saved

  // Of values of this graph, which is kept by reference.
  explicit SaveNetwork(const Graph& graph);

  void save_for(NodeId value, int64_t cost) { add(in(value), out(value), cost); }
  void feed(NodeId value, NodeId reader) { add(out(value), in(reader), Arc::kNoLimit); }
  void forbid_copy(NodeId value) { add(source_, in(value), Arc::kNoLimit); }
  void make_in_backward(NodeId value) { add(in(value), sink_, Arc::kNoLimit); }
  void need(NodeId value) { add(out(value), sink_, Arc::kNoLimit); }

  struct Cut {
    int64_t cost = 0;
    IdMap<NodeId, bool> is_after;  // computed again by backward where it is needed
  };
  // Of the cheapest choices the one that saves the latest values. Errors: those of min_cut(); kUnsupportedGraph, naming the
  // nodes on the way, where a value can neither be saved nor computed again.
  Result<Cut> solve() const;

 private:
  uint32_t in(NodeId node) const { return 2 * static_cast<uint32_t>(graph_.position(node)); }
  uint32_t out(NodeId node) const { return in(node) + 1; }
  void add(uint32_t from, uint32_t to, int64_t capacity) { arcs_.push_back({from, to, capacity}); }

  const Graph& graph_;
  uint32_t source_, sink_;
  std::vector<Arc> arcs_;
};

}  // namespace fxopt
