#include "passes/pass/provenance.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/graph/module.h"
#include "passes/pass/ledger.h"

namespace fxopt {

void Replacer::replace(NodeId gone, NodeId kept) {
  Origin origin;
  origin.graph = graph_.name();
  origin.uid = graph_[gone].uid;
  origin.kind = OriginKind::kMerged;
  origin.pass = graph_.module().intern(pass_);
  std::vector<Origin> inherited;
  if (const NodeExtra* extra = graph_.extra(gone)) inherited = extra->origins;
  std::vector<Origin>& origins = graph_.mutable_extra(kept).origins;
  origins.push_back(std::move(origin));
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
