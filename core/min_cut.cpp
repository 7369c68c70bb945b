#include "core/min_cut.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>

#include "core/saturate.h"

namespace fxopt {
namespace {

using Graph = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                                 boost::no_property, uint32_t, uint32_t>;

// Returns a shortest path over unlimited arcs, or an empty path if there is no such path.
std::vector<uint32_t> unlimited_path(uint32_t num_vertices, std::span<const Arc> arcs, uint32_t source, uint32_t sink) {
  std::vector<uint32_t> first(num_vertices + 1, 0), targets;
  for (const Arc& arc : arcs) first[arc.from + 1] += arc.capacity == Arc::kNoLimit ? 1 : 0;
  for (uint32_t i = 0; i < num_vertices; ++i) first[i + 1] += first[i];
  targets.resize(first.back());
  std::vector<uint32_t> next(first.begin(), first.end() - 1);
  for (const Arc& arc : arcs) {
    if (arc.capacity == Arc::kNoLimit) targets[next[arc.from]++] = arc.to;
  }
  constexpr uint32_t kUnseen = std::numeric_limits<uint32_t>::max();
  std::vector<uint32_t> before(num_vertices, kUnseen), queue = {source};
  before[source] = source;
  for (size_t i = 0; i < queue.size() && before[sink] == kUnseen; ++i) {
    for (uint32_t k = first[queue[i]]; k < first[queue[i] + 1]; ++k) {
      if (before[targets[k]] != kUnseen) continue;
      before[targets[k]] = queue[i];
      queue.push_back(targets[k]);
    }
  }
  std::vector<uint32_t> path;
  if (before[sink] == kUnseen) return path;
  for (uint32_t at = sink; at != source; at = before[at]) path.push_back(at);
  path.push_back(source);
  std::reverse(path.begin(), path.end());
  return path;
}

// The network with a reverse arc for each arc, sorted by source. Leaves out every arc from a vertex
// to itself. No flow needs such an arc, and Boost's algorithm would not terminate.
class Residual {
 public:
  Residual(uint32_t num_vertices, std::span<const Arc> arcs, int64_t no_limit) {
    std::vector<uint32_t> next(num_vertices + 1, 0);
    for (const Arc& arc : arcs) {
      if (arc.from == arc.to) continue;
      ++next[arc.from + 1];
      ++next[arc.to + 1];
    }
    for (uint32_t i = 0; i < num_vertices; ++i) next[i + 1] += next[i];
    const size_t count = next.back();
    std::vector<std::pair<uint32_t, uint32_t>> ends(count);
    std::vector<uint32_t> opposite(count);
    capacity_.resize(count);
    for (const Arc& arc : arcs) {
      if (arc.from == arc.to) continue;
      const uint32_t there = next[arc.from]++;
      const uint32_t back = next[arc.to]++;
      ends[there] = {arc.from, arc.to};
      ends[back] = {arc.to, arc.from};
      opposite[there] = back;
      opposite[back] = there;
      capacity_[there] = arc.capacity == Arc::kNoLimit ? no_limit : arc.capacity;
    }
    graph_ = Graph(boost::edges_are_sorted, ends.begin(), ends.end(), num_vertices);
    opposite_.reserve(count);
    for (size_t i = 0; i < count; ++i) opposite_.emplace_back(ends[opposite[i]].first, opposite[i]);
    residual_.resize(count);
  }

  int64_t run(uint32_t source, uint32_t sink) {
    const uint32_t n = static_cast<uint32_t>(boost::num_vertices(graph_));
    std::vector<boost::default_color_type> color(n);
    std::vector<uint32_t> distance(n);
    std::vector<Graph::edge_descriptor> predecessor(n);
    const auto edge = boost::get(boost::edge_index, graph_);
    const auto vertex = boost::get(boost::vertex_index, graph_);
    return boost::boykov_kolmogorov_max_flow(graph_, boost::make_iterator_property_map(capacity_.begin(), edge),
                                             boost::make_iterator_property_map(residual_.begin(), edge),
                                             boost::make_iterator_property_map(opposite_.begin(), edge),
                                             boost::make_iterator_property_map(predecessor.begin(), vertex),
                                             boost::make_iterator_property_map(color.begin(), vertex),
                                             boost::make_iterator_property_map(distance.begin(), vertex), vertex,
                                             source, sink);
  }

  std::vector<bool> reach(uint32_t sink) const {
    std::vector<bool> reached(boost::num_vertices(graph_), false);
    std::vector<uint32_t> pending = {sink};
    reached[sink] = true;
    while (!pending.empty()) {
      const uint32_t at = pending.back();
      pending.pop_back();
      for (auto [it, end] = boost::out_edges(at, graph_); it != end; ++it) {
        const uint32_t from = static_cast<uint32_t>(boost::target(*it, graph_));
        if (reached[from] || residual_[opposite_[boost::get(boost::edge_index, graph_, *it)].idx] <= 0) continue;
        reached[from] = true;
        pending.push_back(from);
      }
    }
    return reached;
  }

 private:
  Graph graph_;
  std::vector<int64_t> capacity_, residual_;
  std::vector<Graph::edge_descriptor> opposite_;
};

}  // namespace

Result<MinCut> min_cut(uint32_t num_vertices, std::span<const Arc> arcs, uint32_t source, uint32_t sink) {
  WideSum sum = 0;
  for (const Arc& arc : arcs) sum += arc.capacity == Arc::kNoLimit ? 0 : arc.capacity;
  if (sum >= (int64_t{1} << 61) || arcs.size() >= (size_t{1} << 31)) {
    return Error{ErrorCode::kLimit,
                 "cannot compute a cut of a network of " + std::to_string(arcs.size()) +
                     " arcs whose capacities add up to " + std::to_string(saturate(sum)),
                 "the sum must be below 2^61",
                 {}};
  }
  MinCut cut;
  cut.unlimited_path = unlimited_path(num_vertices, arcs, source, sink);
  if (!cut.unlimited_path.empty()) return cut;
  Residual residual(num_vertices, arcs, static_cast<int64_t>(sum) + 1);
  cut.value = residual.run(source, sink);
  cut.is_sink_side = residual.reach(sink);
  return cut;
}

}  // namespace fxopt
