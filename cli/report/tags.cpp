#include "cli/report/tags.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/print/json.h"
#include "cli/print/json_list.h"
#include "cli/print/table.h"
#include "cli/report/memory/report.h"
#include "core/bytes.h"
#include "core/text.h"
#include "ir/step/compose.h"
#include "ir/step/marks.h"
#include "ir/step/step.h"
#include "ir/step/tag_rules.h"
#include "ir/step/tags.h"
#include "ir/values/values.h"
#include "passes/recompute/verdicts.h"

namespace fxopt {
namespace {

using NodeKey = std::pair<StringId, uint64_t>;  // graph, uid
constexpr size_t kFullDepth = 64;               // components of module paths
constexpr std::string_view kMarkWord = "ap_must_save";

bool is_copied(const NodeExtra* extra) {
  return extra != nullptr && extra->tag_source.has_value() && extra->tag_source->is_copied;
}

TagOutcome outcome(const Module& module, StringId graph, std::string_view node, Tag tag,
                   const std::optional<TagVerdict>& verdict, const std::optional<TagSource>& source) {
  TagOutcome result;
  result.graph = module.text(graph);
  result.node = node;
  result.tag = tag;
  if (source.has_value()) result.written_by = module.text(source->pass);
  if (!verdict.has_value()) return result;
  result.verdict = verdict->verdict;
  result.rule = verdict->rule;
  result.pass = module.text(verdict->pass);
  return result;
}

void add_place(const Graph& graph, NodeId node, TagOutcome& result) {
  if (graph[node].is_call()) result.target = graph.module().text(graph.module().target(graph[node].target).name);
  result.module_path = module_of(graph, node);
  const RegionId region = graph[node].region;
  if (region.is_valid() && graph.module().region(region).id.has_value()) {
    result.region = std::to_string(*graph.module().region(region).id);
  }
}

TagOutcome outcome_of_tag(const Graph& graph, NodeId node) {
  static const NodeExtra kNothing;
  const NodeExtra* extra = graph.extra(node) == nullptr ? &kNothing : graph.extra(node);
  TagOutcome result =
      outcome(graph.module(), graph.name(), graph.name_of(node), graph[node].tag, extra->verdict, extra->tag_source);
  add_place(graph, node, result);
  return result;
}

// Returns one outcome for each name in the save mark of a value.
std::vector<TagOutcome> outcomes_of_mark(const Graph& graph, NodeId value) {
  const NodeExtra* extra = graph.extra(value);
  TagOutcome one = outcome(graph.module(), graph.name(), graph.name_of(value), Tag::kNone,
                           extra == nullptr ? std::nullopt : extra->mark_verdict, std::nullopt);
  one.is_mark = true;
  add_place(graph, value, one);
  std::vector<TagOutcome> all;
  for (std::string& name : marked_names(graph, value)) {
    all.push_back(one);
    all.back().value = std::move(name);
  }
  return all;
}

// Forecasts remat's verdicts on a module's tags and save marks, from one graph composed of the
// step's graphs.
class Auditor {
 public:
  explicit Auditor(const Module& module) : module_(module) {
    for (const GraphId id : module.graphs()) note_copies(module.graph(id));
    compose();
  }

  void complete(const Graph& graph, NodeId node, TagOutcome& outcome) {
    const Forecast& forecast = forecast_of(graph);
    const TagForecast& tags = forecast.predicted->tags;
    const NodeId asked = forecast.node_of(node);
    outcome.lacks_backward = !tags.holds_backward && graph.kind != GraphKind::kInference;
    if (outcome.verdict != Verdict::kNone || !asked.is_valid()) return;
    if (outcome.is_mark) return complete_mark(forecast, asked, outcome);
    const TagVerdict& predicted = tags.verdicts[asked];
    outcome.is_forecast = true;
    outcome.verdict = predicted.verdict;
    outcome.rule = predicted.rule;
    if (!wants_recompute(outcome.tag) || predicted.rule == TagRule::kBackwardTag) return;
    if (predicted.verdict == Verdict::kConflicting) return;
    outcome.is_ignored = tags.read[asked];
    if (outcome.is_ignored) return;
    if (has_copy(graph, node)) {
      outcome.verdict = Verdict::kHonoured;
    } else if (outcome.verdict == Verdict::kHonoured) {
      outcome.verdict = Verdict::kMoot;
      outcome.awaits_copies = true;
    }
  }

 private:
  struct Prediction {
    TagForecast tags;
    std::map<NodeId, TagVerdict> marks;  // by value
  };
  struct Forecast {
    std::shared_ptr<const Prediction> predicted;  // shared by the graphs of a composed step
    std::optional<IdMap<NodeId, NodeId>> of;      // to the composed graph; absent: identity
    NodeId node_of(NodeId node) const { return of.has_value() ? of->get(node) : node; }
  };

  void complete_mark(const Forecast& forecast, NodeId value, TagOutcome& outcome) const {
    if (!forecast.predicted->tags.holds_backward) return;
    const auto found = forecast.predicted->marks.find(value);
    const bool is_read = found != forecast.predicted->marks.end();
    outcome.is_forecast = true;
    outcome.verdict = is_read ? found->second.verdict : Verdict::kMoot;
    outcome.rule = is_read ? found->second.rule : TagRule::kNone;
  }

  void note_copies(const Graph& graph) {
    for (const NodeId node : graph.nodes()) {
      const NodeExtra* extra = graph.extra(node);
      if (extra == nullptr) continue;
      for (const Origin& origin : extra->origins) {
        if (origin.kind == OriginKind::kRecomputed) copied_.emplace(origin.graph, origin.uid);
      }
    }
  }

  bool has_copy(const Graph& graph, NodeId node) const {
    const StringId name = module_.strings.find(std::string(graph.name_of(node)) + "_recomputed");
    const std::vector<GraphId>& graphs = module_.graphs();
    return copied_.contains({graph.name(), graph[node].uid}) ||
           std::any_of(graphs.begin(), graphs.end(),
                       [&](GraphId id) { return name.is_valid() && module_.graph(id).find(name).is_valid(); });
  }

  // If the graphs form a step of several runs, composes them into one graph in a copy of the
  // module.
  void compose() {
    const Result<Step> found = find_step(module_);
    if (!found.ok() || found->runs.size() < 2) return;
    copy_ = module_.clone();
    const Result<Step> step = find_step(*copy_);
    composed_ = &copy_->graph(compose_step(*copy_, *step));
    for (const StepRun& run : found->runs) labels_.emplace(run.graph, run.label);
  }

  static std::shared_ptr<const Prediction> foretell(const Graph& graph) {
    Prediction result{forecast_tags(graph, RematOptions()), {}};
    for (const auto& [node, verdict] : result.tags.marks) result.marks.emplace(node, verdict);
    return std::make_shared<const Prediction>(std::move(result));
  }

  const Forecast& forecast_of(const Graph& graph) {
    const auto known = forecasts_.find(graph.id());
    if (known != forecasts_.end()) return known->second;
    Forecast& own = forecasts_[graph.id()];
    const auto label = labels_.find(graph.id());
    if (composed_ == nullptr || label == labels_.end()) {
      own.predicted = foretell(graph);
      return own;
    }
    if (of_step_ == nullptr) of_step_ = foretell(*composed_);
    own.predicted = of_step_;
    own.of.emplace(graph.num_ids());
    for (const NodeId node : graph.nodes()) {
      const StringId name = copy_->strings.find(label->second + "." + std::string(graph.name_of(node)));
      if (name.is_valid()) (*own.of)[node] = composed_->find(name);
    }
    return own;
  }

  const Module& module_;
  std::unique_ptr<Module> copy_;
  const Graph* composed_ = nullptr;  // in copy_
  std::map<GraphId, std::string> labels_;
  std::shared_ptr<const Prediction> of_step_;
  std::map<GraphId, Forecast> forecasts_;
  std::set<NodeKey> copied_;  // nodes that were copied
};

// The order of rows: tags without the requested effect come first.
constexpr std::array<std::string_view, 8> kWords = {"ignored",    "conflicting", "dropped", "overridden",
                                                    "not judged", "honoured",    "implied", "moot"};

size_t rank_of(std::string_view word) {
  return static_cast<size_t>(std::find(kWords.begin(), kWords.end(), word) - kWords.begin());
}

std::string why_text(const TagOutcome& outcome) {
  if (outcome.lacks_backward && (wants_recompute(outcome.tag) || outcome.is_mark)) {
    return "no node of this step is backward";
  }
  if (outcome.is_ignored) {
    std::string text = "backward reads the value, but no pass has recomputed it; remat would ";
    if (outcome.verdict == Verdict::kHonoured) return text + "recompute it";
    return text + "save it: " + std::string(tag_rule(outcome.rule).reason);
  }
  if (outcome.awaits_copies) return "backward does not read the value, but remat would recompute values that read it";
  if (outcome.verdict == Verdict::kMoot && outcome.rule == TagRule::kKeptAnyway) {
    return "a view of memory that is kept anyway; backward reads at most a copy of the view";
  }
  if (outcome.verdict == Verdict::kMoot) return "backward does not read the value";
  if (outcome.verdict == Verdict::kDropped && outcome.pass.empty()) return "missing from the graph";
  if (outcome.verdict == Verdict::kDropped) return "erased by " + outcome.pass;
  if (outcome.verdict == Verdict::kImplied && outcome.rule == TagRule::kNone) return "replaced by another node";
  if (outcome.is_mark && outcome.verdict == Verdict::kHonoured) return "backward reads the saved value";
  return std::string(tag_rule(outcome.rule).reason);
}

std::string remedy_text(const TagOutcome& outcome) {
  if (outcome.is_mark && !breaks_strict_tags(outcome)) return "";
  if (outcome.is_ignored && outcome.verdict == Verdict::kHonoured)
    return "run `fxopt opt IN -o OUT --passes remat,dce`";
  if (outcome.lacks_backward && wants_recompute(outcome.tag)) {
    return "trace the backward pass into the graph, or give the backward nodes the phase `backward`";
  }
  const bool is_merged = outcome.verdict == Verdict::kImplied && outcome.rule == TagRule::kNone;
  const bool is_settled = outcome.verdict == Verdict::kHonoured || outcome.verdict == Verdict::kMoot || is_merged;
  return is_settled && !outcome.is_ignored ? "" : std::string(tag_rule(outcome.rule).remedy);
}

struct TagGroup {
  const TagOutcome* first = nullptr;
  size_t count = 0;
};

// Groups similar outcomes, in the order of printing.
std::vector<TagGroup> group_outcomes(const std::vector<TagOutcome>& outcomes) {
  std::vector<TagGroup> groups;
  std::map<std::vector<std::string>, size_t> found;
  for (const TagOutcome& each : outcomes) {
    std::vector<std::string> key = {
        each.graph,  std::string(decision_word(each)),           std::string(outcome_word(each)),
        each.target, module_group(each.module_path, kFullDepth), why_text(each)};
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

// Collects the outcomes of all tags and save marks of a module.
class Collector {
 public:
  // `auditor` completes the outcomes that no pass has judged. If `auditor` is null, these outcomes
  // have no verdict.
  Collector(const Module& module, Auditor* auditor) : module_(module), auditor_(auditor) {}

  std::vector<TagOutcome> run() {
    for (const ErasedNode& erased : module_.erased) {
      if (!erased.is_mark && erased.verdict.has_value()) ledger_[NodeKey(erased.graph, erased.uid)] = &erased;
    }
    for (const GraphId id : module_.graphs()) add(module_.graph(id));
    for (const ErasedNode& erased : module_.erased) note_merged(erased.origins);
    for (const ErasedNode& erased : module_.erased) add(erased);
    return std::move(outcomes_);
  }

 private:
  void add(const Graph& graph) {
    std::optional<MarkMap> marks;
    if (holds_marks(graph)) marks = find_marks(graph, resolve_phases(graph));
    for (const NodeId node : graph.nodes()) {
      const NodeExtra* extra = graph.extra(node);
      if (extra != nullptr) note_merged(extra->origins);
      if (graph[node].tag != Tag::kNone) add_tag(graph, node);
      if (!marks.has_value() || !marks->is_saved.get(node)) continue;
      for (TagOutcome& each : outcomes_of_mark(graph, node)) {
        if (!names_.emplace(each.graph, each.value).second) continue;  // the same result again
        if (auditor_ != nullptr) auditor_->complete(graph, node, each);
        outcomes_.push_back(std::move(each));
      }
    }
    if (marks.has_value()) add_lost(graph, marks->num_lost);
  }

  // Adds marked values that are missing from the graph. Their names are not recorded.
  void add_lost(const Graph& graph, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      TagOutcome lost;
      lost.graph = module_.text(graph.name());
      lost.is_mark = true;
      lost.verdict = Verdict::kDropped;
      outcomes_.push_back(std::move(lost));
    }
  }

  void add_tag(const Graph& graph, NodeId node) {
    TagOutcome one = outcome_of_tag(graph, node);
    if (auditor_ != nullptr) auditor_->complete(graph, node, one);
    if (!is_copied(graph.extra(node))) return outcomes_.push_back(std::move(one));
    const NodeKey own(graph.name(), graph[node].uid);
    if (const auto earlier = ledger_.find(own); earlier != ledger_.end()) {
      rewritten_.emplace(own, one);
      one.verdict = earlier->second->verdict->verdict;
      one.rule = earlier->second->verdict->rule;
      one.pass = module_.text(earlier->second->verdict->pass);
    }
    // This tag, or the earlier tag of the node, was copied from tags of erased nodes, which get the
    // same outcome.
    for (const Origin& origin : graph.extra(node)->origins) {
      if (origin.kind != OriginKind::kMerged && origin.kind != OriginKind::kReplaced) continue;
      const auto [known, is_new] = copied_.try_emplace(NodeKey(origin.graph, origin.uid), one);
      if (!is_new && rank_of(outcome_word(one)) < rank_of(outcome_word(known->second))) known->second = one;
    }
  }

  void note_merged(const std::vector<Origin>& origins) {
    for (const Origin& origin : origins) {
      if (origin.kind != OriginKind::kMerged && origin.kind != OriginKind::kReplaced) continue;
      merged_.emplace(origin.graph, origin.uid);
    }
  }

  void add(const ErasedNode& erased) {
    TagOutcome one =
        outcome(module_, erased.graph, module_.text(erased.name), erased.tag, erased.verdict, erased.tag_source);
    one.target = module_.text(erased.target);
    one.is_mark = erased.is_mark;
    if (one.is_mark) one.value = one.node;
    const NodeKey key(erased.graph, erased.uid);
    if (const auto copied = copied_.find(key); copied != copied_.end() && one.verdict == Verdict::kNone) {
      one.verdict = copied->second.verdict;
      one.rule = copied->second.rule;
      one.pass = copied->second.pass;
      one.is_forecast = copied->second.is_forecast;
      one.is_ignored = copied->second.is_ignored;
      one.awaits_copies = copied->second.awaits_copies;
      one.lacks_backward = copied->second.lacks_backward;
    } else if (one.verdict == Verdict::kNone) {
      one.verdict = merged_.contains(key) ? Verdict::kImplied : Verdict::kDropped;
      one.pass = module_.text(erased.pass);
    }
    if (const auto found = rewritten_.find(key); found != rewritten_.end()) {
      one.module_path = found->second.module_path;
      one.region = found->second.region;
    }
    // A copied tag is not listed. The tags from which it was copied are in the ledger and are
    // listed instead.
    if (erased.tag_source.has_value() && erased.tag_source->is_copied) return;
    outcomes_.push_back(std::move(one));
  }

  const Module& module_;
  Auditor* auditor_;
  std::vector<TagOutcome> outcomes_;
  // By erased node: the outcome of its tag, which was copied to another node.
  std::map<NodeKey, TagOutcome> copied_;
  std::map<NodeKey, TagOutcome> rewritten_;      // by node: the tag that replaces the node's own tag
  std::map<NodeKey, const ErasedNode*> ledger_;  // judged tags of erased nodes, and earlier tags of nodes
  // nodes merged into another node, which may itself be erased
  std::set<NodeKey> merged_;
  std::set<std::pair<std::string, std::string>> names_;  // graph, marked value
};

}  // namespace

std::vector<TagOutcome> tag_outcomes(const Module& module) { return Collector(module, nullptr).run(); }

std::vector<TagOutcome> audit_tags(const Module& module) {
  Auditor auditor(module);
  return Collector(module, &auditor).run();
}

std::string_view decision_word(const TagOutcome& outcome) { return outcome.is_mark ? kMarkWord : name_of(outcome.tag); }

std::string_view outcome_word(const TagOutcome& outcome) {
  if (outcome.is_ignored) return "ignored";
  return outcome.verdict == Verdict::kNone ? "not judged" : name_of(outcome.verdict);
}

bool breaks_strict_tags(const TagOutcome& outcome) {
  if (!outcome.written_by.empty()) return false;
  if (outcome.verdict == Verdict::kDropped || outcome.verdict == Verdict::kConflicting) return true;
  if (outcome.is_mark) {
    return outcome.verdict == Verdict::kOverridden && outcome.rule != TagRule::kMustRecompute &&
           outcome.rule != TagRule::kPreference;
  }
  if (outcome.is_ignored || (outcome.lacks_backward && wants_recompute(outcome.tag))) return true;
  // PyTorch also saves the outputs of checkpoint regions against their tags. If the graph has no
  // regions, layers stand in for them, and PyTorch would recompute the value.
  const bool is_saved_by_torch = outcome.rule == TagRule::kRegionBoundary && !outcome.region.empty();
  return outcome.verdict == Verdict::kOverridden && outcome.tag == Tag::kMustRecompute && !is_saved_by_torch;
}

bool awaits_remat(const TagOutcome& outcome) {
  return !outcome.is_mark && outcome.verdict == Verdict::kNone && wants_recompute(outcome.tag);
}

std::vector<std::pair<std::string, int64_t>> count_outcomes(const std::vector<TagOutcome>& outcomes, OutcomesOf what) {
  std::array<int64_t, kWords.size()> counts{};
  for (const TagOutcome& each : outcomes) {
    if (each.is_mark == (what == OutcomesOf::kMarks)) ++counts[rank_of(outcome_word(each))];
  }
  std::vector<std::pair<std::string, int64_t>> result;
  for (const std::string_view word :
       {"ignored", "honoured", "implied", "moot", "overridden", "dropped", "conflicting", "not judged"}) {
    if (const int64_t count = counts[rank_of(word)]; count > 0) result.emplace_back(word, count);
  }
  return result;
}

std::string outcomes_text(const std::vector<TagOutcome>& outcomes, OutcomesOf what) {
  std::vector<std::string> parts;
  for (const auto& [word, count] : count_outcomes(outcomes, what)) {
    const std::string_view meaning = word == "moot"      ? " (not used in backward)"
                                     : word == "implied" ? " (no action was necessary)"
                                                         : "";
    parts.push_back(std::to_string(count) + " " + word + std::string(meaning));
  }
  return join(parts, ", ");
}

void print_tags(std::ostream& out, const std::vector<TagOutcome>& outcomes, size_t top) {
  const std::vector<TagGroup> groups = group_outcomes(outcomes);
  Table table({Align::kRight, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft});
  table.add({"nodes", "outcome", "tag", "operator", "module", "example", "why"});
  std::set<std::string> remedies;
  size_t left_out = 0;
  bool leaves_marks = false;
  for (const TagGroup& group : groups) {
    const TagOutcome& one = *group.first;
    if (static_cast<size_t>(&group - groups.data()) >= top) {
      left_out += group.count;
      leaves_marks = leaves_marks || one.is_mark;
      continue;
    }
    table.add({std::to_string(group.count), std::string(outcome_word(one)), std::string(decision_word(one)), one.target,
               module_group(one.module_path, kFullDepth), one.node.empty() ? "" : "%" + one.node, why_text(one)});
    if (const std::string remedy = remedy_text(one); !remedy.empty()) {
      remedies.insert(std::string(outcome_word(one)) + ", " + why_text(one) + ": " + remedy);
    }
  }
  table.print(out);
  if (left_out > 0)
    out << "  and " << left_out << (leaves_marks ? " more tags and marks" : " more tags")
        << "; --top N or --json lists them\n";
  if (remedies.empty()) return;
  out << "remedies\n";
  for (const std::string& remedy : remedies) out << "  " << printable_line(remedy) << '\n';
}

nlohmann::ordered_json tags_json(const std::vector<TagOutcome>& outcomes) {
  return json_list(outcomes, [](const TagOutcome& each) -> nlohmann::ordered_json {
    return {{"graph", each.graph},
            {"node", each.node},
            {"target", each.target},
            {"module_path", each.module_path},
            {"region", each.region},
            {"kind", each.is_mark ? "mark" : "tag"},
            {"tag", decision_word(each)},
            {"value", each.value},
            {"written_by", each.written_by},
            {"outcome", outcome_word(each)},
            {"verdict", name_of(each.verdict)},
            {"is_forecast", each.is_forecast},
            {"rule", name_of(each.rule)},
            {"pass", each.pass},
            {"reason", why_text(each)},
            {"remedy", remedy_text(each)}};
  });
}

}  // namespace fxopt
