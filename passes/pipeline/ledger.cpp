#include "passes/pipeline/ledger.h"

#include <utility>

#include "ir/graph/module.h"

namespace fxopt {

void record_erased(Graph& graph, NodeId node, std::string_view pass) {
  if (graph[node].tag == Tag::kNone) return;
  Module& module = graph.module();
  ErasedNode entry;
  entry.graph = graph.name();
  entry.uid = graph[node].uid;
  entry.name = graph[node].name;
  entry.target = graph[node].target.is_valid() ? module.target(graph[node].target).name : StringId();
  entry.tag = graph[node].tag;
  entry.pass = module.intern(pass);
  if (const NodeExtra* extra = graph.extra(node)) {
    entry.verdict = extra->verdict;
    entry.origins = extra->origins;
  }
  module.erased.push_back(std::move(entry));
}

}  // namespace fxopt
