#include "passes/pass/provenance.h"

#include <utility>
#include <vector>

#include "ir/graph/module.h"
#include "ir/values/values.h"

namespace fxopt {

void add_origin(Graph& graph, NodeId node, NodeId old, OriginKind kind, StringId pass) {
  Origin origin;
  origin.graph = graph.name();
  origin.uid = graph[old].uid;
  origin.kind = kind;
  origin.pass = pass;
  graph.mutable_extra(node).origins.push_back(std::move(origin));
}

void add_merged_origin(Graph& graph, NodeId node, NodeId old, StringId pass) {
  std::vector<Origin> inherited;
  if (const NodeExtra* extra = graph.extra(old)) inherited = extra->origins;
  add_origin(graph, node, old, OriginKind::kMerged, pass);
  std::vector<Origin>& origins = graph.mutable_extra(node).origins;
  for (Origin& from : inherited) {
    if (from.kind != OriginKind::kRecomputed) origins.push_back(std::move(from));
  }
}

NodeId insert_view(Graph& graph, NodeId source, DimsId sizes, NodeId before, NodeId like) {
  Module& module = graph.module();
  Tensor tensor = *single_tensor(graph, source);
  tensor.sizes = sizes;
  tensor.strides = module.contiguous_strides(sizes);
  const NodeId view = graph.insert_node(before, NodeKind::kCallFunction, "view", module.target("aten.view.default"));
  graph[view].take_context(graph[like]);
  graph[view].value = graph.pool().append_value(graph.pool().tensor_value(tensor));
  ArgStack stack(graph.pool());
  stack.push(Arg::node(source));
  const size_t mark = stack.mark();
  for (const Dim& dim : module.dims(sizes)) {
    stack.push(dim.is_static() ? Arg::integer(dim.value) : Arg::expr(dim.expr));
  }
  stack.close(ArgKind::kList, mark);
  graph.set_args(view, stack.take(0), ArgRange());
  return view;
}

}  // namespace fxopt
