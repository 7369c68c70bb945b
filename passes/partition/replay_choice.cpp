// Saves what a first partition marked (ir/step/marks.h), and nothing else.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ir/alias/effects.h"
#include "ir/graph/module.h"
#include "ir/values/values.h"
#include "passes/partition/choice.h"
#include "passes/partition/refusal.h"

namespace fxopt {
namespace {

class ReplayChooser {
 public:
  ReplayChooser(const Graph& graph, Facts& facts, PreferRecompute prefer)
      : graph_(graph),
        phases_(facts.phases()),
        storages_(facts.storages()),
        effects_(facts.effects()),
        decisions_(decide_tags(graph, phases_, storages_, effects_, TagRules::kFxopt, prefer)) {}

  Result<Choice> run() {
    const MarkMap& marks = decisions_.marks;
    if (std::optional<Error> error = check(marks)) return *std::move(error);
    decisions_.wanted = "carries no ap_must_save";
    decisions_.remedy = "mark it, or partition the first graph in a way that saves it";
    decisions_.unrepeatable.clear();
    is_base_ = find_bases(marks);
    const std::vector<TagRemark> of_tags = std::exchange(decisions_.remarks, {});
    for (const TagRemark& remark : of_tags) {
      if (marks.is_saved.get(remark.node)) decisions_.remarks.push_back(remark);
    }
    for (const NodeId node : graph_.nodes()) {
      if (graph_[node].is_call() && !phases_.is_backward(node)) decide(node);
    }
    Choice choice;
    choice.num_marked = marks.num_names;
    choice.num_lost = marks.num_lost;
    choice.decisions = std::move(decisions_);
    return choice;
  }

 private:
  // Backward nodes may carry the marks of forward nodes, but not a mark that no forward node carries: that value cannot be saved.
  std::optional<Error> check(const MarkMap& marks) const {
    if (marks.in_backward_alone.is_valid()) {
      const NodeId node = marks.in_backward_alone;
      return refused(graph_, node,
                     "'" + std::string(graph_.module().text(read_mark(graph_, node).name)) +
                         "', which the first partition saved, is computed only in backward: " + quoted(graph_, node),
                     "compute it in forward, or remove its ap_must_save");
    }
    const std::vector<ErasedNode>& ledger = graph_.module().erased;
    const bool had_marks =
        std::any_of(ledger.begin(), ledger.end(), [](const ErasedNode& each) { return each.is_mark; });
    if (!marks.values.empty() || had_marks) return std::nullopt;
    if (marks.without_part.is_valid()) {
      return refused(graph_, marks.without_part,
                     quoted(graph_, marks.without_part) +
                         " carries ap_must_save for results that no getitem reads, and no other forward value "
                         "is marked",
                     "the marks belong to another graph: use those of this model's first compilation");
    }
    return refused(graph_, NodeId(), "no forward value is marked (ap_must_save)",
                   "run the first partition with mark-saved=true, and keep `custom` in the trace (`fxopt help marks`)");
  }

  IdMap<NodeId, bool> find_bases(const MarkMap& marks) const {
    IdMap<NodeId, bool> is_base(graph_.num_ids(), false);
    for (const NodeId value : marks.values) {
      for (const BufferId id : storages_.buffers(value)) {
        const Buffer* buffer = id.is_valid() ? &storages_.buffer(id) : nullptr;
        const bool is_node = buffer != nullptr && buffer->source == BufferSource::kNode;
        if (is_node && buffer->producer != value && whole_of(graph_, value) != buffer->producer) {
          is_base[buffer->producer] = true;
        }
      }
    }
    return is_base;
  }

  void decide(NodeId node) {
    TagDecision& decision = decisions_.of[node];
    if (graph_.value(node).kind == ValueKind::kSymbolic) {
      decision.recompute = false;
      decision.rule = TagRule::kSymbol;
      return;
    }
    const bool is_marked = decisions_.marks.is_saved.get(node);
    if (!is_marked && graph_[node].tag == Tag::kMustSave && !gives_way(node)) {
      decision.recompute = false;
      decision.rule = TagRule::kMustSave;
      if (!is_policy_tag(graph_, node)) {
        decisions_.remarks.push_back(
            {node, "saved-besides", "not recomputed, by MUST_SAVE, although the first partition did not save it"});
      }
      return;
    }
    // The memory of a marked view stays, and with it the value that it views.
    if (!is_marked && is_base_.get(node) && !decision.recompute) {
      decision.rule = TagRule::kInherited;
      return;
    }
    if (!is_marked) {
      decision.recompute = true;
      decision.rule = TagRule::kReplay;
    }
    const std::string_view reason = decision.recompute ? why_unrepeatable(graph_, node, effects_) : std::string_view();
    if (!reason.empty()) decisions_.unrepeatable.push_back({node, reason});
  }

  // A policy's tag, but on what cannot be recomputed: by a preference of the same policy backward may need it.
  bool gives_way(NodeId node) {
    return is_policy_tag(graph_, node) && why_unrepeatable(graph_, node, effects_).empty();
  }

  const Graph& graph_;
  const PhaseMap& phases_;
  const StorageMap& storages_;
  EffectMap& effects_;
  TagDecisions decisions_;
  IdMap<NodeId, bool> is_base_;  // of a marked view
};

}  // namespace

Result<Choice> choose_marked(const Graph& graph, Facts& facts, PreferRecompute prefer) {
  return ReplayChooser(graph, facts, prefer).run();
}

}  // namespace fxopt
