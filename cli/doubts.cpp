#include "cli/doubts.h"

#include "cli/files.h"
#include "ir/graph/module.h"
#include "ir/graph/top_level.h"

namespace fxopt {

void warn_of_doubts(Console& console, const std::string& file, const Graph& graph, const PhaseMap& phases,
                    const StorageSource& storages) {
  for (const GraphDoubt& doubt : find_doubts(graph, phases, storages)) {
    const Where where = where_in(file, graph.module().text(graph.name()), graph.name_of(doubt.node));
    console.warning(doubt.code, where, doubt.text);
  }
}

void warn_of_doubts(Console& console, const std::string& file, const Module& module, ModuleFacts& facts) {
  for (const GraphId id : top_level_graphs(module)) {
    const Graph& graph = module.graph(id);
    Facts& own = facts.of(graph);
    warn_of_doubts(console, file, graph, own.phases(), [&own]() -> const StorageMap& { return own.storages(); });
  }
}

}  // namespace fxopt
