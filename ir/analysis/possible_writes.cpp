#include "ir/analysis/possible_writes.h"

#include <span>
#include <utility>

namespace fxopt {

PossibleWrites::PossibleWrites(const Graph& graph, const StorageMap& storages, EffectMap& effects)
    : storages_(&storages),
      touched_(graph.num_ids()),
      ever_(storages.num_buffers(), false),
      last_(storages.num_buffers()) {
  for (const NodeId node : graph.nodes()) {
    const auto touch = [&](std::span<const BufferId> buffers) {
      for (const BufferId buffer : buffers) {
        if (!buffer.is_valid()) continue;
        touched_[node].push_back(storages.alias_class(buffer));
        ever_[storages.alias_class(buffer)] = true;
      }
    };
    touch(storages.writes(node));
    if (has_effect(effects.of(node), Effect::kOpaque)) touch(storages.reads(node));
  }
}

void PossibleWrites::pass(NodeId node) {
  for (const BufferId alias_class : std::as_const(touched_)[node]) last_[alias_class] = node;
}

}  // namespace fxopt
