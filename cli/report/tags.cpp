#include "cli/report/tags.h"

#include <set>
#include <utility>

namespace fxopt {
namespace {

using NodeKey = std::pair<StringId, uint64_t>;  // graph, uid

void add_merged(const std::vector<Origin>& origins, std::set<NodeKey>& merged) {
  for (const Origin& origin : origins) {
    if (origin.kind != OriginKind::kMerged && origin.kind != OriginKind::kReplaced) continue;
    merged.emplace(origin.graph, origin.uid);
  }
}

// Nodes that another one stands for, itself erased or not.
std::set<NodeKey> merged_nodes(const Module& module) {
  std::set<NodeKey> merged;
  for (size_t i = 0; i < module.num_graphs(); ++i) {
    const Graph& graph = module.graph(GraphId(i));
    for (const NodeId node : graph.nodes()) {
      if (const NodeExtra* extra = graph.extra(node)) add_merged(extra->origins, merged);
    }
  }
  for (const ErasedNode& erased : module.erased) add_merged(erased.origins, merged);
  return merged;
}

TagOutcome outcome(const Module& module, StringId graph, std::string_view node, Tag tag, const TagVerdict& verdict) {
  return {std::string(module.text(graph)),       std::string(node), tag, verdict.verdict, verdict.rule,
          std::string(module.text(verdict.pass))};
}

}  // namespace

std::vector<TagOutcome> tag_outcomes(const Module& module) {
  std::vector<TagOutcome> outcomes;
  for (size_t i = 0; i < module.num_graphs(); ++i) {
    const Graph& graph = module.graph(GraphId(i));
    for (const NodeId node : graph.nodes()) {
      if (graph[node].tag == Tag::kNone) continue;
      const NodeExtra* extra = graph.extra(node);
      const TagVerdict verdict = extra == nullptr ? TagVerdict{} : extra->verdict.value_or(TagVerdict{});
      outcomes.push_back(outcome(module, graph.name(), graph.name_of(node), graph[node].tag, verdict));
    }
  }
  if (module.erased.empty()) return outcomes;
  const std::set<NodeKey> merged = merged_nodes(module);
  for (const ErasedNode& erased : module.erased) {
    TagVerdict verdict = erased.verdict.value_or(TagVerdict{});
    if (verdict.verdict == Verdict::kNone) {
      verdict.verdict = merged.contains({erased.graph, erased.uid}) ? Verdict::kImplied : Verdict::kDropped;
      verdict.pass = erased.pass;
    }
    outcomes.push_back(outcome(module, erased.graph, module.text(erased.name), erased.tag, verdict));
  }
  return outcomes;
}

std::map<std::string, int64_t> count_verdicts(const std::vector<TagOutcome>& outcomes) {
  std::map<std::string, int64_t> counts;
  for (const TagOutcome& outcome : outcomes) ++counts[std::string(name_of(outcome.verdict))];
  return counts;
}

}  // namespace fxopt
