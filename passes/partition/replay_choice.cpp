// What a first partition has marked is saved (ir/step/replay.h), and nothing else.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/hash_table.h"
#include "ir/alias/effects.h"
#include "ir/graph/module.h"
#include "ir/step/halves.h"
#include "ir/step/replay.h"
#include "ir/values/values.h"
#include "passes/partition/choice.h"
#include "passes/partition/refusal.h"

namespace fxopt {
namespace {

class ReplayChooser {
 public:
  ReplayChooser(const Graph& graph, Facts& facts, bool recomputes_preferred)
      : graph_(graph),
        phases_(facts.phases()),
        storages_(facts.storages()),
        effects_(facts.effects()),
        recomputes_preferred_(recomputes_preferred) {}

  Result<Choice> run() {
    const TagDecisions of_tags = decide_tags(graph_, phases_, storages_, effects_, TagRules::kFxopt);
    choice_.decisions.of = IdMap<NodeId, TagDecision>(graph_.num_ids());
    choice_.decisions.wanted = "carries no ap_must_save";
    choice_.decisions.remedy = "mark it, or partition the first graph in a way that saves it";
    find_marked();
    for (const NodeId node : graph_.nodes()) {
      if (phases_.is_backward(node)) choice_.decisions.of[node] = of_tags.of.get(node);
      if (!graph_[node].is_call() || phases_.is_backward(node)) continue;
      if (is_marked_.get(node) && graph_[node].tag == Tag::kMustRecompute) {
        return refused(graph_, node, quoted(graph_, node) + " carries ap_must_save and the tag MUST_RECOMPUTE",
                       "take one of them away; a partition that marks what it saves takes the tag away");
      }
      decide(node);
    }
    if (num_marked_ == 0 && without_part_.is_valid()) {
      return refused(graph_, without_part_,
                     quoted(graph_, without_part_) +
                         " carries ap_must_save for parts that nothing here takes of it, and no "
                         "other value of forward carries it",
                     "the marks are those of another graph: take over what the first compilation of this model wrote");
    }
    if (num_marked_ == 0) {
      return refused(graph_, NodeId(), "no value of forward carries ap_must_save, so there is nothing to repeat",
                     "let the first partition mark what it saves: partition{mark-saved=true}");
    }
    if (std::optional<Error> error = check_backward()) return *std::move(error);
    choice_.num_marked = num_marked_;
    choice_.num_lost = std::max(total_ - num_marked_, num_untaken_);
    return std::move(choice_);
  }

 private:
  // Of nodes with one mark the last one: a trace that takes a call apart gives its metadata to all it is made of.
  void find_marked() {
    is_marked_ = IdMap<NodeId, bool>(graph_.num_ids(), false);
    HashMap<StringId, NodeId> last;
    for (const NodeId node : graph_.nodes()) {
      if (!graph_[node].is_call() || phases_.is_backward(node)) continue;
      count_untaken(node);
      if (!is_marked_saved(graph_, node)) continue;
      const ReplayMark mark = replay_mark(graph_, node);
      total_ = std::max(total_, mark.total);
      const bool is_part = whole_of(graph_, node).is_valid();
      if (mark.name.is_valid()) named_.insert(mark.name);
      if (mark.name.is_valid() && !is_part) {
        NodeId& known = last[mark.name];
        if (known.is_valid()) {
          is_marked_[known] = false;
          --num_marked_;
        }
        known = node;
      }
      is_marked_[node] = true;
      ++num_marked_;
    }
  }

  // Parts of a marked call that the first partition saved, and that nobody takes here.
  void count_untaken(NodeId node) {
    const ReplayMark mark = replay_mark(graph_, node);
    if (!mark.exists || !mark.has_parts || whole_of(graph_, node).is_valid()) return;
    const auto taken = [&](int64_t part) {
      for (UseId use = graph_.first_use(node); use.is_valid(); use = graph_.use(use).next) {
        const Arg* key = graph_.arg(graph_.use(use).user, 1);
        if (takes_part(graph_, graph_.use(use).user) && key->is(ArgKind::kInt) && key->as_int() == part) return true;
      }
      return false;
    };
    const int64_t untaken =
        std::count_if(mark.parts.begin(), mark.parts.end(), [&](int64_t part) { return !taken(part); });
    if (untaken > 0 && !without_part_.is_valid()) without_part_ = node;
    num_untaken_ += untaken;
  }

  void decide(NodeId node) {
    TagDecision& decision = choice_.decisions.of[node];
    decision.effective = graph_[node].tag;
    const ValueKind kind = graph_.value(node).kind;
    if (kind == ValueKind::kSymbolic) {
      decision.rule = TagRule::kSymbol;
      return;
    }
    const bool is_preferred = recomputes_preferred_ && graph_[node].tag == Tag::kPreferRecompute;
    if (is_marked_.get(node) && !is_preferred) {
      decision.rule = TagRule::kReplay;
      return;
    }
    if (graph_[node].tag == Tag::kMustSave) {
      decision.rule = TagRule::kMustSave;
      choice_.decisions.remarks.push_back(
          {node, "saved-besides", "saved as MUST_SAVE says, although the first partition did not save it"});
      return;
    }
    decision.recompute = true;
    decision.rule = is_preferred ? TagRule::kPreference : TagRule::kReplay;
    const std::string_view reason = why_unrepeatable(graph_, node, effects_);
    if (!reason.empty()) choice_.decisions.unrepeatable.push_back({node, reason});
  }

  // A marked value that only backward computes cannot be saved. Backward nodes may carry the marks of forward's, which autograd
  // gives them.
  std::optional<Error> check_backward() const {
    for (const NodeId node : graph_.nodes()) {
      if (!graph_[node].is_call() || !phases_.is_backward(node)) continue;
      const ReplayMark mark = replay_mark(graph_, node);
      if (!mark.exists || !mark.name.is_valid() || named_.contains(mark.name)) continue;
      return refused(
          graph_, node,
          "'" + std::string(graph_.module().text(mark.name)) +
              "', which the first partition saved, is computed by backward alone here: " + quoted(graph_, node),
          "let forward compute it, or take its ap_must_save away");
    }
    return std::nullopt;
  }

  const Graph& graph_;
  const PhaseMap& phases_;
  const StorageMap& storages_;
  EffectMap& effects_;
  bool recomputes_preferred_;
  IdMap<NodeId, bool> is_marked_;
  HashSet<StringId> named_;
  int64_t num_marked_ = 0, total_ = 0, num_untaken_ = 0;
  NodeId without_part_;  // the first call with a part that is not taken
  Choice choice_;
};

}  // namespace

Result<Choice> choose_marked(const Graph& graph, Facts& facts, bool recomputes_preferred) {
  return ReplayChooser(graph, facts, recomputes_preferred).run();
}

}  // namespace fxopt
