#include "passes/recompute/verdicts.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ir/alias/effects.h"
#include "ir/step/tags.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

// If `node` is a view, a getitem or an in-place op, returns the input whose memory or element it
// returns. Invalid for a node that makes its own value.
NodeId handed_on(const Graph& graph, const StorageMap& storages, NodeId node) {
  const NodeId input = graph[node].is_call() ? first_argument(graph, node) : NodeId();
  if (!input.is_valid()) return NodeId();
  const bool shares = std::ranges::any_of(storages.buffers(node), [&](BufferId id) {
    return id.is_valid() && std::ranges::count(storages.buffers(input), id) > 0;
  });
  return shares || whole_of(graph, node).is_valid() ? input : NodeId();
}

// The values that nodes with is_reader(node) read, directly or through views, getitems and in-place
// ops.
template <class IsReader>
IdMap<NodeId, bool> find_read(const Graph& graph, const RematFacts& facts, const IsReader& is_reader) {
  IdMap<NodeId, bool> read(graph.num_ids(), false);
  for (NodeId node = graph.last(); node.is_valid(); node = graph.prev(node)) {
    if (is_reader(node)) graph.for_each_input(node, [&read](NodeId input) { read[input] = true; });
    if (facts.phases.is_backward(node) || !read.get(node)) continue;
    if (const NodeId base = handed_on(graph, facts.storages, node); base.is_valid()) read[base] = true;
  }
  return read;
}

class Judge {
 public:
  Judge(const Graph& graph, const RematPlan& plan, const RematFacts& facts)
      : graph_(graph),
        plan_(plan),
        facts_(facts),
        read_(find_read(graph, facts,
                        [&](NodeId node) { return facts.phases.is_backward(node) && !plan.is_size[node]; })),
        read_in_plan_(find_read(graph, facts, [&](NodeId node) {
          return plan.recomputed[node] ||
                 (facts.phases.is_backward(node) && !plan.excluded[node] && !plan.is_size[node]);
        })) {}

  TagRule rule(NodeId node) const {
    const TagRule held_back = plan_.blocked[node];
    return held_back == TagRule::kNone ? facts_.decisions.of[node].rule : held_back;
  }

  TagVerdict judge(NodeId node) const {
    const TagRule decided = rule(node);
    if (decided == TagRule::kBackwardTag) return verdict(Verdict::kOverridden, decided);
    const bool asks_for_recompute = wants_recompute(graph_[node].tag);
    if (!asks_for_recompute) {
      const bool is_overridden = plan_.recomputed[node] && facts_.decisions.of[node].recompute;
      if (is_overridden) return verdict(Verdict::kOverridden, why_recomputed(decided));
      return verdict(is_needed(node) ? Verdict::kHonoured : Verdict::kMoot, decided);
    }
    if (plan_.recomputed[node]) return verdict(Verdict::kHonoured, decided);
    if (!is_needed(node)) return verdict(Verdict::kMoot, decided);
    if (plan_.blocked[node] == TagRule::kUnrepeatable) return verdict(Verdict::kConflicting, decided);
    // The node may be a view of memory that is kept only because of the node.
    if (decided == TagRule::kUnrepeatable) return verdict(Verdict::kOverridden, decided);
    if (is_view_of_kept(facts_, plan_, node)) {
      if (is_part_to_recompute(node) && read_.get(node)) return verdict(Verdict::kOverridden, TagRule::kInherited);
      return verdict(read_.get(node) ? Verdict::kImplied : Verdict::kMoot, TagRule::kKeptAnyway);
    }
    return verdict(Verdict::kOverridden, read_in_plan_.get(node) ? why_kept(node, decided) : TagRule::kExcluded);
  }

  TagVerdict judge_mark(NodeId value) const {
    if (!is_needed(value)) return verdict(Verdict::kMoot, TagRule::kNone);
    if (!plan_.recomputed[value]) return verdict(Verdict::kHonoured, TagRule::kReplay);
    const TagRule decided = rule(value);
    return verdict(Verdict::kOverridden, decided == TagRule::kReplay ? TagRule::kCut : why_recomputed(decided));
  }

  bool is_needed(NodeId node) const { return read_.get(node) || read_in_plan_.get(node); }
  const IdMap<NodeId, bool>& read() const { return read_; }

 private:
  // True for a result tagged MUST_RECOMPUTE whose call is untagged. The result has its own memory,
  // and is recomputed only with the call.
  bool is_part_to_recompute(NodeId node) const {
    const NodeId whole = whole_of(graph_, node);
    return graph_[node].tag == Tag::kMustRecompute && whole.is_valid() && graph_[whole].is_call() &&
           graph_[whole].tag == Tag::kNone;
  }

  // A rule for saving cannot be the reason for a recompute. The reason is then the cut of a
  // partitioner, or the decision on the value's base.
  static TagRule why_recomputed(TagRule decided) {
    if (decided == TagRule::kMustSave) return TagRule::kCut;
    return decided == TagRule::kNone ? TagRule::kInherited : decided;
  }

  // A rule for recompute cannot be the reason for saving. The reason is then that backward reads
  // only a saved view of the value, or its saved contents after an in-place write.
  TagRule why_kept(NodeId node, TagRule decided) const {
    if (plan_.blocked[node] != TagRule::kNone || !facts_.decisions.of[node].recompute) return decided;
    return facts_.repeats.is_written_later(node) ? TagRule::kWritten : TagRule::kInherited;
  }

  static TagVerdict verdict(Verdict verdict, TagRule rule) { return {verdict, rule, {}, {}}; }

  const Graph& graph_;
  const RematPlan& plan_;
  const RematFacts& facts_;
  IdMap<NodeId, bool> read_;          // by backward of the input graph
  IdMap<NodeId, bool> read_in_plan_;  // by copies, and by backward outside excluded modules
};

IdMap<NodeId, TagVerdict> judge_all(const Graph& graph, const Judge& judge) {
  IdMap<NodeId, TagVerdict> verdicts(graph.num_ids());
  for (const NodeId node : graph.nodes()) {
    verdicts[node] =
        graph[node].tag == Tag::kNone ? TagVerdict{Verdict::kNone, judge.rule(node), {}, {}} : judge.judge(node);
  }
  return verdicts;
}

// Getitems of one result share the strongest verdict: overridden, then honoured, then moot.
bool outweighs(Verdict one, Verdict other) {
  const auto weight = [](Verdict verdict) {
    return verdict == Verdict::kOverridden ? 2 : verdict == Verdict::kHonoured ? 1 : 0;
  };
  return weight(one) > weight(other);
}

std::vector<std::pair<NodeId, TagVerdict>> judge_all_marks(const Graph& graph, const Judge& judge,
                                                           const MarkMap& marks) {
  std::vector<std::pair<NodeId, TagVerdict>> verdicts;
  std::map<std::pair<NodeId, int64_t>, size_t> places;  // places of getitems, by call and index
  for (const NodeId value : marks.values) {
    const TagVerdict verdict = judge.judge_mark(value);
    verdicts.emplace_back(value, verdict);
    const Arg* key = whole_of(graph, value).is_valid() ? graph.arg(value, 1) : nullptr;
    if (key == nullptr || !key->is(ArgKind::kInt)) continue;
    const size_t last = verdicts.size() - 1;
    const auto [place, is_new] = places.try_emplace({whole_of(graph, value), key->as_int()}, last);
    if (is_new) continue;
    if (outweighs(verdict.verdict, verdicts[place->second].second.verdict)) verdicts[place->second].second = verdict;
    verdicts[last].second = verdicts[place->second].second;
  }
  return verdicts;
}

}  // namespace

bool is_view_of_kept(const RematFacts& facts, const RematPlan& plan, NodeId node) {
  const std::span<const BufferId> buffers = facts.storages.buffers(node);
  return !buffers.empty() && std::ranges::all_of(buffers, [&](BufferId id) {
    const Buffer& buffer = facts.storages.buffer(id);
    if (buffer.source != BufferSource::kNode) return true;
    const bool is_kept =
        !facts.decisions.of[buffer.producer].recompute || plan.blocked[buffer.producer] != TagRule::kNone;
    return buffer.producer != node && is_kept;
  });
}

RematFacts::RematFacts(Facts& facts, TagDecisions decided)
    : phases(facts.phases()),
      holds_backward(fxopt::holds_backward(facts.graph(), phases)),
      effects(facts.effects()),
      storages(facts.storages()),
      repeats(facts.graph(), phases, storages),
      decisions(std::move(decided)),
      reloads(facts.graph(), phases, storages) {}

RematFacts::RematFacts(Facts& facts, Compat compat)
    : RematFacts(facts, decide_tags(facts.graph(), facts.phases(), facts.storages(), facts.effects(),
                                    compat == Compat::kTorch ? TagRules::kTorch : TagRules::kFxopt)) {}

IdMap<NodeId, TagVerdict> judge_tags(const Graph& graph, const RematPlan& plan, const RematFacts& facts) {
  return judge_all(graph, Judge(graph, plan, facts));
}

std::vector<std::pair<NodeId, TagVerdict>> judge_marks(const Graph& graph, const RematPlan& plan,
                                                       const RematFacts& facts) {
  if (facts.decisions.marks.values.empty()) return {};
  return judge_all_marks(graph, Judge(graph, plan, facts), facts.decisions.marks);
}

TagForecast forecast_tags(const Graph& graph, const RematOptions& options) {
  ModuleFacts asked(graph.module());
  const RematFacts facts(asked.of(graph), options.compat);
  const RematPlan plan = forecast_remat(graph, facts, options);
  const Judge judge(graph, plan, facts);
  TagForecast forecast;
  forecast.verdicts = judge_all(graph, judge);
  forecast.marks = judge_all_marks(graph, judge, facts.decisions.marks);
  forecast.recomputed = plan.recomputed;
  forecast.read = judge.read();
  forecast.needed = IdMap<NodeId, bool>(graph.num_ids(), false);
  for (const NodeId node : graph.nodes()) forecast.needed[node] = judge.is_needed(node);
  forecast.holds_backward = facts.holds_backward;
  return forecast;
}

}  // namespace fxopt
