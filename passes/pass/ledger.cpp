#include "passes/pass/ledger.h"

#include <optional>
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

void erase_unread(Graph& graph, NodeId node, std::string_view pass) {
  if (graph[node].tag != Tag::kNone) {
    std::optional<TagVerdict>& verdict = graph.mutable_extra(node).verdict;
    if (!verdict.has_value()) {
      verdict.emplace();
      verdict->verdict = Verdict::kMoot;
      verdict->pass = graph.module().intern(pass);
    }
    record_erased(graph, node, pass);
  }
  graph.erase(node);
}

}  // namespace fxopt
