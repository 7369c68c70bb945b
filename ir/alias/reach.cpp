#include "ir/alias/reach.h"

#include <utility>

namespace fxopt {

Reach reach_forward(const Graph& graph, const StorageMap& storages, const std::vector<ReachStart>& starts) {
  Reach reach;
  reach.masks = IdMap<NodeId, uint64_t>(graph.num_ids(), 0);
  for (const ReachStart& start : starts) reach.masks[start.node] |= start.bits;
  IdMap<BufferId, uint64_t> written(storages.num_buffers(), 0);
  for (const NodeId node : graph.nodes()) {
    uint64_t mask = reach.masks.get(node);
    graph.for_each_input(node, [&mask, &reach](NodeId input) { mask |= reach.masks.get(input); });
    for (const BufferId buffer : storages.reads(node)) mask |= written.get(buffer);
    if (mask == 0) continue;
    reach.masks[node] = mask;
    for (const BufferId buffer : storages.writes(node)) {
      if (buffer.is_valid()) written[buffer] |= mask;
    }
  }
  return reach;
}

}  // namespace fxopt
