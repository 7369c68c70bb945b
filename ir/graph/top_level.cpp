#include "ir/graph/top_level.h"

namespace fxopt {
namespace {

class Subgraphs {
 public:
  explicit Subgraphs(const Module& module) : module_(module), is_subgraph_(module.num_graph_ids(), false) {
    for (const GraphId id : module.graphs()) {
      const Graph& graph = module.graph(id);
      if (graph.owner.is_valid() || graph.kind == GraphKind::kSubgraph) is_subgraph_[id.index()] = true;
      for (const Attribute& attribute : graph.attributes) mark(attribute.graph);
      for (const NodeId node : graph.nodes()) {
        mark_args(graph, graph[node].args);
        mark_args(graph, graph[node].kwargs);
      }
    }
  }

  bool contains(GraphId graph) const { return is_subgraph_[graph.index()]; }

 private:
  void mark(StringId name) {
    const GraphId id = module_.find_graph(name);
    if (id.is_valid()) is_subgraph_[id.index()] = true;
  }

  void mark_args(const Graph& graph, ArgRange range) {
    for (const Arg& arg : graph.pool().args(range)) {
      if (arg.is(ArgKind::kGraph)) mark(arg.as_string());
      if (arg.has_children()) mark_args(graph, arg.range());  // depth is bounded by every reader
    }
  }

  const Module& module_;
  std::vector<bool> is_subgraph_;
};

}  // namespace

std::vector<GraphId> top_level_graphs(const Module& module) {
  if (module.num_graphs() == 1) return module.graphs();
  const Subgraphs subgraphs(module);
  std::vector<GraphId> graphs;
  for (const GraphId id : module.graphs()) {
    if (id == module.main().id() || !subgraphs.contains(id)) graphs.push_back(id);  // main runs, whatever names it
  }
  return graphs;
}

}  // namespace fxopt
