#include "ir/step/replay.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "ir/alias/effects.h"
#include "ir/step/halves.h"
#include "ir/step/repeat.h"
#include "ir/step/tags.h"

namespace fxopt {
namespace {

class Replayer {
 public:
  Replayer(const Graph& graph, Facts& facts, PreferRecompute prefer)
      : graph_(graph),
        phases_(facts.phases()),
        storages_(facts.storages()),
        effects_(facts.effects()),
        repeats_(graph, phases_, storages_),
        decisions_(decide_tags(graph, phases_, storages_, effects_, TagRules::kFxopt, prefer)),
        is_base_(graph.num_ids(), false),
        is_read_(graph.num_ids(), false) {}

  Replay run() {
    const IdMap<NodeId, bool>& is_marked = decisions_.marks.is_saved;
    decisions_.unrepeatable.clear();
    std::erase_if(decisions_.remarks, [&](const TagRemark& remark) { return !is_marked.get(remark.node); });
    const auto first = static_cast<std::ptrdiff_t>(decisions_.remarks.size());
    // Consumers are visited first, because a view keeps its base only if the view is read.
    for (NodeId node = graph_.last(); node.is_valid(); node = graph_.prev(node)) {
      const bool is_backward = phases_.is_backward(node);
      const bool is_forward = graph_[node].is_call() && !is_backward;
      if (is_forward) decide(node);
      const bool is_read = is_forward && is_read_.get(node);
      if (is_read && is_marked.get(node)) keep_bases(node);
      const bool is_copied = is_read && decisions_.of[node].recompute && !repeats_.is_written_later(node);
      if (is_backward || is_copied) {
        graph_.for_each_input(node, [this](NodeId input) { is_read_[input] = true; });
      }
    }
    std::ranges::reverse(decisions_.unrepeatable);
    std::reverse(decisions_.remarks.begin() + first, decisions_.remarks.end());
    return {std::move(decisions_), std::move(is_read_)};
  }

 private:
  // A saved view keeps the memory of its base live, so the base is saved as well.
  void keep_bases(NodeId view) {
    for (const BufferId id : storages_.buffers(view)) {
      const Buffer* buffer = id.is_valid() ? &storages_.buffer(id) : nullptr;
      const bool is_node = buffer != nullptr && buffer->source == BufferSource::kNode;
      if (is_node && buffer->producer != view && whole_of(graph_, view) != buffer->producer) {
        is_base_[buffer->producer] = true;
      }
    }
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
            {node, "saved-besides",
             "saved because of its tag MUST_SAVE, although the value has no mark (ap_must_save)"});
      }
      return;
    }
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

  // Whether the replay ignores the MUST_SAVE tag of an unmarked node. This is true for a policy's
  // tag on a node that can be recomputed. If the node cannot be recomputed, the tag is obeyed,
  // because backward may need the node.
  bool gives_way(NodeId node) {
    return is_policy_tag(graph_, node) && why_unrepeatable(graph_, node, effects_).empty();
  }

  const Graph& graph_;
  const PhaseMap& phases_;
  const StorageMap& storages_;
  EffectMap& effects_;
  RepeatRules repeats_;
  TagDecisions decisions_;
  IdMap<NodeId, bool> is_base_;  // whether the node is the base of a saved view
  IdMap<NodeId, bool> is_read_;
};

bool is_tagged_for_recompute(const Graph& graph, NodeId node) {
  return wants_recompute(graph[node].tag) && !is_policy_tag(graph, node);
}

// Whether one mark lists results of its call, and the other mark covers the whole call.
bool are_marked_otherwise(const Graph& graph, NodeId one, NodeId other) {
  const Mark mine = read_mark(graph, one), yours = read_mark(graph, other);
  return mine.exists && yours.exists && mine.has_parts != yours.has_parts;
}

// Calls `pair` for each two getitems that take the same element of two calls.
template <class Pair>
void for_each_part(const Graph& graph, NodeId one, NodeId other, const Pair& pair) {
  std::multimap<int64_t, NodeId> parts;
  const auto each_part = [&graph](NodeId whole, const auto& visit) {
    for (const NodeId user : graph.users(whole)) {
      if (is_projection(graph, user) && graph.arg(user, 1)->is(ArgKind::kInt))
        visit(graph.arg(user, 1)->as_int(), user);
    }
  };
  each_part(other, [&](int64_t index, NodeId yours) { parts.emplace(index, yours); });
  if (parts.empty()) return;
  each_part(one, [&](int64_t index, NodeId mine) {
    for (auto [at, end] = parts.equal_range(index); at != end; ++at) pair(mine, at->second);
  });
}

}  // namespace

Replay replay_marks(const Graph& graph, Facts& facts, PreferRecompute prefer) {
  return Replayer(graph, facts, prefer).run();
}

MergedSaves::MergedSaves(Facts& facts) : graph_(facts.graph()), has_marks_(holds_marks(graph_)) {
  if (!has_marks_ || !holds_backward(graph_, facts.phases())) return;
  has_fates_ = true;
  const Replay replay = replay_marks(graph_, facts, PreferRecompute::kWins);
  fates_ = IdMap<NodeId, Fate>(graph_.num_ids());
  for (const NodeId node : graph_.nodes()) {
    const bool is_backward = facts.phases().is_backward(node);
    const bool is_marked = replay.decisions.marks.is_saved.get(node);
    const bool is_recomputed = is_marked ? replay.decisions.of[node].recompute : is_tagged_for_recompute(graph_, node);
    fates_[node] = {is_marked, is_backward || replay.is_read.get(node), !is_backward && is_recomputed};
  }
}

MergedSaves::Fate MergedSaves::merged(NodeId gone, NodeId kept, Tags tags) const {
  const Fate& one = fates_[gone];
  const Fate& other = fates_[kept];
  const bool gets_tag = one.is_recomputed && tags == Tags::kMerged;
  return {one.is_marked || other.is_marked, one.is_read || other.is_read, other.is_recomputed || gets_tag};
}

bool MergedSaves::is_kept(NodeId gone, NodeId kept, Tags tags) const {
  return merged(gone, kept, tags).is_saved() == (fates_[gone].is_saved() || fates_[kept].is_saved());
}

bool MergedSaves::are_kept(NodeId gone, NodeId kept, Tags tags) const {
  if (has_marks_ && are_marked_otherwise(graph_, gone, kept)) return false;
  if (!has_fates_) return true;
  bool are_kept = is_kept(gone, kept, tags);
  for_each_part(graph_, gone, kept,
                [&](NodeId mine, NodeId yours) { are_kept = are_kept && is_kept(mine, yours, tags); });
  return are_kept;
}

void MergedSaves::merge(NodeId gone, NodeId kept, Tags tags) {
  if (!has_fates_) return;
  fates_[kept] = merged(gone, kept, tags);
  for_each_part(graph_, gone, kept, [&](NodeId mine, NodeId yours) { fates_[yours] = merged(mine, yours, tags); });
}

}  // namespace fxopt
