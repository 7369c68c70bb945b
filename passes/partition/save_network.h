#pragma once

#include <cstdint>
#include <vector>

#include "core/min_cut.h"
#include "core/result.h"
#include "ir/graph/graph.h"

namespace fxopt {

// The choice of saved values as a minimal cut. Each value has two vertices, with the names `in` and
// `out`. If `in` is on the source side of the cut and `out` is on the sink side, the value is
// saved. If `in` is on the source side, only forward computes the value. If `in` is on the sink
// side and backward needs the value, backward computes or recomputes the value. These arcs exist:
//
//   source -> `in`    backward must not recompute the value
//   `in`   -> sink    backward must compute or recompute the value
//   `in`   -> `out`   the capacity is the cost of saving the value
//   `out`  -> `in`    from the `out` of the value to the `in` of each consumer of the value
//   `out`  -> sink    backward must have the value, saved or recomputed
//
// The capacities of the other four kinds of arcs are unlimited. The functions of choice.h decide
// which arcs each value gets.
class SaveNetwork {
 public:
  static constexpr int64_t kNever = Arc::kNoLimit;  // the cost of a value that cannot be saved

  // Keeps a reference to the graph.
  explicit SaveNetwork(const Graph& graph);

  void save_for(NodeId value, int64_t cost) { add(in(value), out(value), cost); }
  void feed(NodeId value, NodeId reader) { add(out(value), in(reader), Arc::kNoLimit); }
  void forbid_copy(NodeId value) { add(source_, in(value), Arc::kNoLimit); }
  void make_in_backward(NodeId value) { add(in(value), sink_, Arc::kNoLimit); }
  void need(NodeId value) { add(out(value), sink_, Arc::kNoLimit); }

  struct Cut {
    int64_t cost = 0;
    // True if the vertex `in` of the value is on the sink side. If backward needs this value,
    // backward recomputes the value.
    IdMap<NodeId, bool> is_after;
  };
  // Among the cheapest choices, returns the choice whose saved values come latest in the schedule.
  // Errors: those of min_cut(), and kUnsupportedGraph if a value can be neither saved nor
  // recomputed. The error kUnsupportedGraph names the nodes on a path of arcs that cannot be cut.
  Result<Cut> solve() const;

 private:
  uint32_t in(NodeId node) const { return 2 * static_cast<uint32_t>(graph_.position(node)); }
  uint32_t out(NodeId node) const { return in(node) + 1; }
  void add(uint32_t from, uint32_t to, int64_t capacity) { arcs_.push_back({from, to, capacity}); }

  const Graph& graph_;
  uint32_t source_ = 2 * static_cast<uint32_t>(graph_.num_nodes()), sink_ = source_ + 1;
  std::vector<Arc> arcs_;
};

}  // namespace fxopt
