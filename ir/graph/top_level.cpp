#include "ir/graph/top_level.h"

namespace fxopt {
namespace {

void add_named_graphs(const Graph& graph, ArgRange range, std::vector<StringId>& names) {
  for (const Arg& arg : graph.pool().args(range)) {
    if (arg.is(ArgKind::kGraph)) names.push_back(arg.as_string());
    if (arg.has_children()) add_named_graphs(graph, arg.range(), names);  // every reader limits the depth
  }
}

class Subgraphs {
 public:
  explicit Subgraphs(const Module& module) : module_(module), is_subgraph_(module.num_graph_ids(), false) {
    bool is_open = false;
    for (const GraphId id : module.graphs()) {
      const Graph& graph = module.graph(id);
      is_subgraph_[id.index()] = graph.owner.is_valid() || graph.kind == GraphKind::kSubgraph;
      is_open = is_open || (id != module.main().id() && !is_subgraph_[id.index()]);
    }
    if (!is_open) return;  // each graph is marked or owned
    for (const GraphId id : module.graphs()) {
      for (const StringId name : named_graphs(module.graph(id))) mark(name);
    }
  }

  bool contains(GraphId graph) const { return is_subgraph_[graph.index()]; }

 private:
  void mark(StringId name) {
    const GraphId id = module_.find_graph(name);
    if (id.is_valid()) is_subgraph_[id.index()] = true;
  }

  const Module& module_;
  std::vector<bool> is_subgraph_;
};

// Defines the symbol by the first placeholder whose value is the symbol. If no placeholder has this
// value, the symbol has no definition.
void define_again(const Graph& graph, Symbol& symbol) {
  symbol.graph = symbol.node = StringId();
  symbol.key_path.clear();
  for (const NodeId node : graph.nodes()) {
    const Value& value = graph.value(node);
    if (graph[node].kind != NodeKind::kPlaceholder || value.kind != ValueKind::kSymbolic) continue;
    const Expr& expr = graph.module().exprs[ExprId(value.first)];
    if (expr.kind != ExprKind::kSymbol || expr.name != symbol.name) continue;
    symbol.graph = graph.name();
    symbol.node = graph[node].name;
    return;
  }
}

}  // namespace

std::vector<GraphId> top_level_graphs(const Module& module) {
  if (module.num_graphs() == 1) return module.graphs();
  const Subgraphs subgraphs(module);
  std::vector<GraphId> graphs;
  for (const GraphId id : module.graphs()) {
    if (id == module.main().id() || !subgraphs.contains(id)) graphs.push_back(id);  // main always runs
  }
  return graphs;
}

std::vector<StringId> named_graphs(const Graph& graph) {
  std::vector<StringId> names;
  for (const Attribute& attribute : graph.attributes) {
    if (attribute.graph.is_valid()) names.push_back(attribute.graph);
  }
  for (const NodeId node : graph.nodes()) {
    add_named_graphs(graph, graph[node].args, names);
    add_named_graphs(graph, graph[node].kwargs, names);
  }
  return names;
}

std::unique_ptr<Module> extract_graph(const Module& module, GraphId id) {
  std::unique_ptr<Module> own = module.clone();
  std::vector<bool> is_kept(module.num_graph_ids(), false);
  std::vector<GraphId> pending = {id};
  while (!pending.empty()) {
    const GraphId next = pending.back();
    pending.pop_back();
    if (is_kept[next.index()]) continue;
    is_kept[next.index()] = true;
    for (const StringId name : named_graphs(own->graph(next))) {
      const GraphId named = own->find_graph(name);
      if (named.is_valid()) pending.push_back(named);
    }
  }
  std::vector<GraphId> gone;
  for (const GraphId each : own->graphs()) {
    if (!is_kept[each.index()]) gone.push_back(each);
  }
  own->remove_graphs(gone);
  const Graph& graph = own->graph(id);
  for (const GraphId each : own->graphs()) {
    if (each != id && !own->find_graph(own->graph(each).owner).is_valid()) own->graph(each).owner = graph.name();
  }
  for (Symbol& symbol : own->symbols) {
    if (symbol.graph.is_valid() && !own->find_graph(symbol.graph).is_valid()) define_again(graph, symbol);
  }
  own->invocations.clear();
  own->certificate.reset();
  return own;
}

}  // namespace fxopt
