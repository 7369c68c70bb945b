#include "cli/report/tags.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/print/json.h"
#include "cli/print/table.h"
#include "cli/report/memory/report.h"
#include "core/text.h"
#include "ir/step/tag_rules.h"
#include "ir/step/tags.h"
#include "ir/values/values.h"
#include "passes/recompute/verdicts.h"

namespace fxopt {
namespace {

using NodeKey = std::pair<StringId, uint64_t>;  // graph, uid
constexpr size_t kFullDepth = 64;               // of module paths

void add_merged(const std::vector<Origin>& origins, std::set<NodeKey>& merged) {
  for (const Origin& origin : origins) {
    if (origin.kind != OriginKind::kMerged && origin.kind != OriginKind::kReplaced) continue;
    merged.emplace(origin.graph, origin.uid);
  }
}

// Nodes that another one stands for, itself erased or not.
std::set<NodeKey> merged_nodes(const Module& module) {
  std::set<NodeKey> merged;
  for (const GraphId id : module.graphs()) {
    const Graph& graph = module.graph(id);
    for (const NodeId node : graph.nodes()) {
      if (const NodeExtra* extra = graph.extra(node)) add_merged(extra->origins, merged);
    }
  }
  for (const ErasedNode& erased : module.erased) add_merged(erased.origins, merged);
  return merged;
}

TagOutcome outcome(const Module& module, StringId graph, std::string_view node, Tag tag, const TagVerdict& verdict) {
  TagOutcome result;
  result.graph = module.text(graph);
  result.node = node;
  result.tag = tag;
  result.verdict = verdict.verdict;
  result.rule = verdict.rule;
  result.pass = module.text(verdict.pass);
  return result;
}

TagOutcome outcome_of_node(const Graph& graph, NodeId node) {
  const NodeExtra* extra = graph.extra(node);
  const TagVerdict verdict = extra == nullptr ? TagVerdict{} : extra->verdict.value_or(TagVerdict{});
  TagOutcome result = outcome(graph.module(), graph.name(), graph.name_of(node), graph[node].tag, verdict);
  if (graph[node].is_call()) result.target = graph.module().text(graph.module().target(graph[node].target).name);
  result.module_path = module_of(graph, node);
  const RegionId region = graph[node].region;
  if (region.is_valid() && graph.module().region(region).id.has_value()) {
    result.region = std::to_string(*graph.module().region(region).id);
  }
  return result;
}

void add_erased(const Module& module, std::vector<TagOutcome>& outcomes) {
  if (module.erased.empty()) return;
  const std::set<NodeKey> merged = merged_nodes(module);
  for (const ErasedNode& erased : module.erased) {
    TagVerdict verdict = erased.verdict.value_or(TagVerdict{});
    if (verdict.verdict == Verdict::kNone) {
      verdict.verdict = merged.contains({erased.graph, erased.uid}) ? Verdict::kImplied : Verdict::kDropped;
      verdict.pass = erased.pass;
    }
    outcomes.push_back(outcome(module, erased.graph, module.text(erased.name), erased.tag, verdict));
    outcomes.back().target = module.text(erased.target);
  }
}

// Nodes of the graph that some copy was made of.
std::set<uint64_t> copied_uids(const Graph& graph) {
  std::set<uint64_t> copied;
  for (const NodeId node : graph.nodes()) {
    const NodeExtra* extra = graph.extra(node);
    if (extra == nullptr) continue;
    for (const Origin& origin : extra->origins) {
      if (origin.kind == OriginKind::kRecomputed && origin.graph == graph.name()) copied.insert(origin.uid);
    }
  }
  return copied;
}

class Auditor {
 public:
  explicit Auditor(const Graph& graph)
      : graph_(graph), forecast_(forecast_tags(graph, RematOptions())), copied_(copied_uids(graph)) {}

  void complete(NodeId node, TagOutcome& outcome) const {
    outcome.lacks_backward = !forecast_.holds_backward;
    if (outcome.verdict != Verdict::kNone) return;
    const TagVerdict& foretold = forecast_.verdicts[node];
    outcome.is_forecast = true;
    outcome.verdict = foretold.verdict;
    outcome.rule = foretold.rule;
    if (!wants_recompute(outcome.tag) || foretold.rule == TagRule::kBackwardTag) return;
    if (foretold.verdict == Verdict::kConflicting) return;
    outcome.is_ignored = forecast_.read[node];
    if (outcome.is_ignored) return;
    if (has_copy(node)) {
      outcome.verdict = Verdict::kHonoured;
    } else if (outcome.verdict == Verdict::kHonoured) {
      outcome.verdict = Verdict::kMoot;
      outcome.awaits_copies = true;
    }
  }

 private:
  bool has_copy(NodeId node) const {
    const std::string name = std::string(graph_.name_of(node)) + "_recomputed";
    return copied_.contains(graph_[node].uid) || graph_.find(graph_.module().strings.find(name)).is_valid();
  }

  const Graph& graph_;
  TagForecast forecast_;
  std::set<uint64_t> copied_;
};

// The order of rows: what the user did not get comes first.
constexpr std::array<std::string_view, 8> kWords = {"ignored",    "conflicting", "dropped", "overridden",
                                                    "not judged", "honoured",    "implied", "moot"};

size_t rank_of(std::string_view word) {
  return static_cast<size_t>(std::find(kWords.begin(), kWords.end(), word) - kWords.begin());
}

std::string why_text(const TagOutcome& outcome) {
  if (outcome.lacks_backward && wants_recompute(outcome.tag)) return "no node of this graph is backward";
  if (outcome.is_ignored) {
    std::string text = "backward reads it, and no pass has recomputed it; remat would ";
    if (outcome.verdict == Verdict::kHonoured) return text + "recompute it";
    return text + "save it: " + std::string(tag_rule(outcome.rule).reason);
  }
  if (outcome.awaits_copies) return "backward does not read it; what remat would recompute does";
  if (outcome.verdict == Verdict::kMoot && outcome.rule == TagRule::kKeptAnyway) {
    return "a view of memory that is kept anyway; backward reads at most a copy of it";
  }
  if (outcome.verdict == Verdict::kMoot) return "backward does not read it";
  if (outcome.verdict == Verdict::kDropped) return "erased by " + outcome.pass;
  if (outcome.verdict == Verdict::kImplied && outcome.rule == TagRule::kNone) return "another node took its place";
  return std::string(tag_rule(outcome.rule).reason);
}

std::string remedy_text(const TagOutcome& outcome) {
  if (outcome.is_ignored && outcome.verdict == Verdict::kHonoured)
    return "run `fxopt opt IN -o OUT --passes remat,dce`";
  if (outcome.lacks_backward && wants_recompute(outcome.tag)) {
    return "trace the backward pass into the graph, or mark its nodes";
  }
  const bool is_merged = outcome.verdict == Verdict::kImplied && outcome.rule == TagRule::kNone;
  const bool is_settled = outcome.verdict == Verdict::kHonoured || outcome.verdict == Verdict::kMoot || is_merged;
  return is_settled && !outcome.is_ignored ? "" : std::string(tag_rule(outcome.rule).remedy);
}

struct TagGroup {
  const TagOutcome* first = nullptr;
  size_t count = 0;
};

// Groups in the order of printing.
std::vector<TagGroup> group_outcomes(const std::vector<TagOutcome>& outcomes) {
  std::vector<TagGroup> groups;
  std::map<std::vector<std::string>, size_t> found;
  for (const TagOutcome& each : outcomes) {
    std::vector<std::string> key = {each.graph,
                                    std::string(name_of(each.tag)),
                                    std::string(outcome_word(each)),
                                    each.target,
                                    module_group(each.module_path, kFullDepth),
                                    why_text(each)};
    const auto [place, is_new] = found.try_emplace(std::move(key), groups.size());
    if (is_new) groups.push_back({&each, 0});
    ++groups[place->second].count;
  }
  std::stable_sort(groups.begin(), groups.end(), [](const TagGroup& a, const TagGroup& b) {
    const size_t left = rank_of(outcome_word(*a.first)), right = rank_of(outcome_word(*b.first));
    return left != right ? left < right : a.count > b.count;
  });
  return groups;
}

}  // namespace

std::vector<TagOutcome> tag_outcomes(const Module& module) {
  std::vector<TagOutcome> outcomes;
  for (const GraphId id : module.graphs()) {
    const Graph& graph = module.graph(id);
    for (const NodeId node : graph.nodes()) {
      if (graph[node].tag != Tag::kNone) outcomes.push_back(outcome_of_node(graph, node));
    }
  }
  add_erased(module, outcomes);
  return outcomes;
}

std::vector<TagOutcome> audit_tags(const Module& module) {
  std::vector<TagOutcome> outcomes;
  for (const GraphId id : module.graphs()) {
    const Graph& graph = module.graph(id);
    std::optional<Auditor> auditor;
    for (const NodeId node : graph.nodes()) {
      if (graph[node].tag == Tag::kNone) continue;
      if (!auditor.has_value()) auditor.emplace(graph);
      outcomes.push_back(outcome_of_node(graph, node));
      auditor->complete(node, outcomes.back());
    }
  }
  add_erased(module, outcomes);
  return outcomes;
}

std::string_view outcome_word(const TagOutcome& outcome) {
  if (outcome.is_ignored) return "ignored";
  return outcome.verdict == Verdict::kNone ? "not judged" : name_of(outcome.verdict);
}

bool breaks_strict_tags(const TagOutcome& outcome) {
  if (outcome.is_ignored || (outcome.lacks_backward && wants_recompute(outcome.tag))) return true;
  if (outcome.verdict == Verdict::kDropped || outcome.verdict == Verdict::kConflicting) return true;
  return outcome.verdict == Verdict::kOverridden && outcome.tag == Tag::kMustRecompute;
}

bool awaits_remat(const TagOutcome& outcome) {
  return outcome.verdict == Verdict::kNone && wants_recompute(outcome.tag);
}

std::vector<std::pair<std::string, int64_t>> count_outcomes(const std::vector<TagOutcome>& outcomes) {
  std::array<int64_t, kWords.size()> counts{};
  for (const TagOutcome& each : outcomes) ++counts[rank_of(outcome_word(each))];
  std::vector<std::pair<std::string, int64_t>> result;
  for (const std::string_view word :
       {"ignored", "honoured", "implied", "moot", "overridden", "dropped", "conflicting", "not judged"}) {
    if (const int64_t count = counts[rank_of(word)]; count > 0) result.emplace_back(word, count);
  }
  return result;
}

std::string outcomes_text(const std::vector<TagOutcome>& outcomes) {
  std::vector<std::string> parts;
  for (const auto& [word, count] : count_outcomes(outcomes)) parts.push_back(std::to_string(count) + " " + word);
  return join(parts, ", ");
}

void print_tags(std::ostream& out, const std::vector<TagOutcome>& outcomes, size_t top) {
  const std::vector<TagGroup> groups = group_outcomes(outcomes);
  Table table({Align::kRight, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft});
  table.add({"nodes", "outcome", "tag", "operator", "module", "such as", "why"});
  std::set<std::string> remedies;
  size_t left_out = 0;
  for (const TagGroup& group : groups) {
    const TagOutcome& one = *group.first;
    if (static_cast<size_t>(&group - groups.data()) >= top) {
      left_out += group.count;
      continue;
    }
    table.add({std::to_string(group.count), std::string(outcome_word(one)), std::string(name_of(one.tag)), one.target,
               module_group(one.module_path, kFullDepth), "%" + one.node, why_text(one)});
    if (const std::string remedy = remedy_text(one); !remedy.empty()) {
      remedies.insert(std::string(outcome_word(one)) + ", " + why_text(one) + ": " + remedy);
    }
  }
  table.print(out);
  if (left_out > 0) out << "  and " << left_out << " more tags; --top N or --json lists them\n";
  if (remedies.empty()) return;
  out << "what to do\n";
  for (const std::string& remedy : remedies) out << "  " << printable_line(remedy) << '\n';
}

nlohmann::ordered_json tags_json(const std::vector<TagOutcome>& outcomes) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const TagOutcome& each : outcomes) {
    json.push_back({{"graph", each.graph},
                    {"node", each.node},
                    {"target", each.target},
                    {"module_path", each.module_path},
                    {"region", each.region},
                    {"tag", name_of(each.tag)},
                    {"outcome", outcome_word(each)},
                    {"verdict", name_of(each.verdict)},
                    {"is_forecast", each.is_forecast},
                    {"rule", name_of(each.rule)},
                    {"pass", each.pass},
                    {"reason", why_text(each)},
                    {"remedy", remedy_text(each)}});
  }
  return json;
}

}  // namespace fxopt
