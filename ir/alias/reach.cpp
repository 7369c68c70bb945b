#include "ir/alias/reach.h"

#include <utility>

namespace fxopt {

Reach reach_forward(const Graph& graph, const StorageMap& storages, const std::vector<ReachStart>& starts) {
  Reach reach;
  reach.masks = IdMap<NodeId, uint64_t>(graph.num_ids(), 0);
  for (const ReachStart& start : starts) reach.masks[start.node] |= start.bits;
  IdMap<BufferId, uint64_t> written(storages.num_buffers(), 0);
  bool has_begun = false;  // nodes before the first start depend on no start
  for (const NodeId node : graph.nodes()) {
    uint64_t mask = reach.masks.get(node);
    has_begun = has_begun || mask != 0;
    if (!has_begun) continue;
    graph.for_each_input(node, [&mask, &reach](NodeId input) { mask |= reach.masks.get(input); });
    for (const BufferId buffer : storages.reads(node)) mask |= written.get(buffer);
    if (mask == 0) continue;
    reach.masks[node] = mask;
    for_each_buffer(storages.writes(node), [&](BufferId buffer) { written[buffer] |= mask; });
  }
  return reach;
}

IdMap<NodeId, bool> reach_back(const Graph& graph, const StorageMap& storages, const std::vector<NodeId>& ends) {
  IdMap<NodeId, bool> reached(graph.num_ids(), false);
  for (const NodeId end : ends) reached[end] = true;
  IdMap<BufferId, bool> is_read(storages.num_buffers(), false);
  for (NodeId node = graph.last(); node.is_valid(); node = graph.prev(node)) {
    if (any_buffer(storages.writes(node), [&](BufferId buffer) { return is_read.get(buffer); })) reached[node] = true;
    if (!reached.get(node)) continue;
    graph.for_each_input(node, [&reached](NodeId input) { reached[input] = true; });
    for_each_buffer(storages.reads(node), [&](BufferId buffer) { is_read[buffer] = true; });
    // The result also depends on earlier writes to its own memory.
    for_each_buffer(storages.buffers(node), [&](BufferId buffer) { is_read[buffer] = true; });
  }
  return reached;
}

}  // namespace fxopt
