#include "passes/pass/provenance.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/graph/module.h"
#include "ir/values/values.h"
#include "passes/pass/ledger.h"

namespace fxopt {

void add_origin(Graph& graph, NodeId node, NodeId old, OriginKind kind, StringId pass) {
  Origin origin;
  origin.graph = graph.name();
  origin.uid = graph[old].uid;
  origin.kind = kind;
  origin.pass = pass;
  graph.mutable_extra(node).origins.push_back(std::move(origin));
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

void Replacer::replace(NodeId gone, NodeId kept) {
  std::vector<Origin> inherited;
  if (const NodeExtra* extra = graph_.extra(gone)) inherited = extra->origins;
  add_origin(graph_, kept, gone, OriginKind::kMerged, graph_.module().intern(pass_));
  std::vector<Origin>& origins = graph_.mutable_extra(kept).origins;
  for (Origin& from : inherited) {
    if (from.kind != OriginKind::kRecomputed) origins.push_back(std::move(from));
  }
  record_erased(graph_, gone, pass_);
  graph_.replace_all_uses(gone, kept);
  graph_.erase(gone);
  replaced_[gone] = kept;
  any_ = true;
}

void Replacer::finish() {
  if (!any_) return;
  for (const NodeId node : graph_.nodes()) {
    if (!graph_[node].extra.is_valid()) continue;
    std::vector<ControlDep>& control = graph_.mutable_extra(node).control;
    bool moved = false;
    for (ControlDep& dep : control) {
      while (replaced_.get(dep.node).is_valid()) {
        dep.node = replaced_.get(dep.node);
        moved = true;
      }
    }
    if (!moved) continue;
    std::vector<ControlDep> distinct;
    for (const ControlDep& dep : control) {
      if (std::find(distinct.begin(), distinct.end(), dep) == distinct.end()) distinct.push_back(dep);
    }
    control = std::move(distinct);
  }
}

}  // namespace fxopt
