#pragma once

#include <cstdint>
#include <vector>

#include "core/min_cut.h"
#include "core/result.h"
#include "ir/graph/graph.h"

namespace fxopt {

// The choice of saved values as a minimal cut. Each value is two vertices with an arc between them,
// whose capacity is the cost of saving the value. Forward alone computes values before the cut;
// backward recomputes values after it.
//
//   source -> in      backward must not recompute it
//   in     -> sink    backward must compute or recompute it
//   in     -> out     the cost of saving it
//   out    -> in      of each of its consumers
//   out    -> sink    backward must have it, saved or recomputed
//
// The chooser decides which arcs a value gets (choice.h).
class SaveNetwork {
 public:
  static constexpr int64_t kNever = Arc::kNoLimit;  // the cost of a value that cannot be saved

  // For values of this graph, which is kept by reference.
  explicit SaveNetwork(const Graph& graph);

  void save_for(NodeId value, int64_t cost) { add(in(value), out(value), cost); }
  void feed(NodeId value, NodeId reader) { add(out(value), in(reader), Arc::kNoLimit); }
  void forbid_copy(NodeId value) { add(source_, in(value), Arc::kNoLimit); }
  void make_in_backward(NodeId value) { add(in(value), sink_, Arc::kNoLimit); }
  void need(NodeId value) { add(out(value), sink_, Arc::kNoLimit); }

  struct Cut {
    int64_t cost = 0;
    IdMap<NodeId, bool> is_after;  // recomputed by backward if needed there
  };
  // Among the cheapest choices, takes the one that saves the latest values. Errors: those of
  // min_cut(). kUnsupportedGraph, naming the nodes on the path, if a value can be neither saved nor
  // recomputed.
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
