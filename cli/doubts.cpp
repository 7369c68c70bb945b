#include "cli/doubts.h"

#include <optional>

#include "ir/alias/storages.h"
#include "ir/graph/module.h"
#include "ir/graph/top_level.h"

namespace fxopt {

void warn_of_doubts(Console& console, const std::string& file, const Graph& graph, const PhaseMap& phases,
                    const StorageSource& storages) {
  for (const GraphDoubt& doubt : find_doubts(graph, phases, storages)) {
    Where where;
    where.file = file;
    where.graph = graph.module().text(graph.name());
    where.node = graph.name_of(doubt.node);
    console.warning(doubt.code, where, doubt.text);
  }
}

void warn_of_doubts(Console& console, const std::string& file, const Module& module) {
  for (const GraphId id : top_level_graphs(module)) {
    const Graph& graph = module.graph(id);
    std::optional<StorageMap> storages;
    const StorageSource source = [&]() -> const StorageMap& {
      if (!storages.has_value()) storages.emplace(graph);
      return *storages;
    };
    warn_of_doubts(console, file, graph, resolve_phases(graph, source), source);
  }
}

}  // namespace fxopt
