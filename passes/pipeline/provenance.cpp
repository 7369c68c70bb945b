#include "passes/pipeline/provenance.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/graph/module.h"
#include "passes/pipeline/ledger.h"

namespace fxopt {
void merge_into(Graph& graph, NodeId gone, NodeId kept, std::string_view pass) {
  Origin origin;
  origin.graph = graph.name();
  origin.uid = graph[gone].uid;
  origin.kind = OriginKind::kMerged;
  origin.pass = graph.module().intern(pass);
  std::vector<Origin> inherited;
  if (const NodeExtra* extra = graph.extra(gone)) inherited = extra->origins;
  std::vector<Origin>& origins = graph.mutable_extra(kept).origins;
  origins.push_back(std::move(origin));
  for (Origin& from : inherited) {
    if (from.kind != OriginKind::kRecomputed) origins.push_back(std::move(from));
  }
  record_erased(graph, gone, pass);
  graph.replace_all_uses(gone, kept);
}

void retarget_control(Graph& graph, const IdMap<NodeId, NodeId>& replaced) {
  for (const NodeId node : graph.nodes()) {
    if (!graph[node].extra.is_valid()) continue;
    std::vector<ControlDep>& control = graph.mutable_extra(node).control;
    bool moved = false;
    for (ControlDep& dep : control) {
      while (replaced[dep.node].is_valid()) {
        dep.node = replaced[dep.node];
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
