// Chooses the values that forward saves, so that their bytes are minimal.
//
//   %a = mm(%x, %w)            saved, 4 MiB: a product is not recomputed
//   %b = gelu(%a)              recomputed from %a, for its consumers in backward
//   %c = view(%b)              a view of %b, which needs no further memory
//   %d = dropout(%c)           saved: a draw is not repeated
//
// The cut minimizes only the bytes of saved values, not the other memory that is live in backward
// (step_memory.h). For example, a copy in the last layer may need a chain of copies from the first
// layer on, all live for long. lower_peak() saves the values of the chain if this lowers the peak.
//
// Each value is checked once for all of backward: RepeatRules must allow a copy at the end of the
// graph. The copy is then legal at earlier places as well, so remat blocks no further values.

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "core/saturate.h"
#include "ir/alias/effects.h"
#include "ir/alias/sizes.h"
#include "ir/step/repeat.h"
#include "ir/values/values.h"
#include "passes/partition/choice.h"
#include "passes/partition/save_network.h"
#include "passes/partition/step_memory.h"
#include "passes/pass/nodes.h"

namespace fxopt {
namespace {

class MinCutChooser {
 public:
  MinCutChooser(const Graph& graph, Facts& facts, const PassContext& context)
      : graph_(graph), facts_(facts), symbols_(context.measure.memory.symbols) {}

  Result<std::vector<Choice>> run() {
    keep_parts_of_kept();
    for (const NodeId node : graph_.nodes()) {
      if (graph_[node].kind == NodeKind::kOutput) continue;
      phases_.is_backward(node) ? network_.make_in_backward(node) : add(node);
    }
    const Result<SaveNetwork::Cut> cut = network_.solve();
    if (!cut.ok()) return cut.error();
    const StepMemory memory(graph_, phases_, storages_, [this](BufferId id) { return bytes_of(id); });
    const SaveNetwork::Cut lower = lower_peak(memory, *cut);
    std::vector<Choice> choices = {as_choice(*cut)};
    if (!is_same(*cut, lower)) choices.push_back(as_choice(lower));
    return choices;
  }

 private:
  // Whether a tag decides about the value.
  static bool is_told(const TagDecision& decision) {
    return decision.rule != TagRule::kNone && decision.rule != TagRule::kCollective;
  }

  bool may_choose(NodeId node) const {
    return graph_[node].is_call() && !phases_.is_backward(node) && !is_told(decisions_.of.get(node));
  }

  // If a copy is live at the peak, recomputing the value does not lower the peak, because the copy
  // and its operands are live there. Therefore these values are saved, those with the longest-lived
  // copies first, as long as the peak becomes lower.
  SaveNetwork::Cut lower_peak(const StepMemory& memory, SaveNetwork::Cut best) {
    constexpr int kRounds = 8, kPatience = 3;
    constexpr uint32_t kShare = 16;  // divisor of the length of backward
    constexpr int64_t kGain = 128;   // divisor of the peak: smaller gains are ignored
    StepMemory::Profile least = memory.profile(again(best)), found = least;
    for (int round = 0, in_vain = 0; round < kRounds && in_vain < kPatience; ++round) {
      if (!forbid_copies(found, memory.num_places_of_backward() / kShare) && !forbid_copies(found, 0)) break;
      Result<SaveNetwork::Cut> cut = network_.solve();
      if (!cut.ok()) break;
      found = memory.profile(again(*cut));
      ++in_vain;
      if (found.peak >= least.peak - least.peak / kGain) continue;
      in_vain = 0;
      least = found;
      best = std::move(*cut);
    }
    return best;
  }

  bool is_same(const SaveNetwork::Cut& left, const SaveNetwork::Cut& right) const {
    return std::ranges::all_of(graph_.nodes(), [&](NodeId node) {
      return !may_choose(node) || left.is_after.get(node) == right.is_after.get(node);
    });
  }

  Choice as_choice(const SaveNetwork::Cut& cut) const {
    Choice choice = choice_;
    choice.cost = cut.cost;
    choice.decisions = decisions_;
    for (const NodeId node : graph_.nodes()) {
      if (may_choose(node)) choice.decisions.of[node] = {Tag::kNone, cut.is_after.get(node), TagRule::kCut};
    }
    return choice;
  }

  // True for a value of several parts, which are saved one by one.
  bool is_whole(NodeId node) const {
    constexpr std::array kSingle = {ValueKind::kTensor, ValueKind::kOpaque, ValueKind::kAbsent, ValueKind::kSymbolic,
                                    ValueKind::kScalar};
    return std::ranges::count(kSingle, graph_.value(node).kind) == 0;
  }

  // Forbids copies that are live at the peak and for at least `least` places of backward. Returns
  // false if none is left.
  bool forbid_copies(const StepMemory::Profile& profile, uint32_t least) {
    bool is_new = false;
    for (const StepMemory::Copy& copy : profile.copies) {
      const bool is_there = copy.first <= profile.place && profile.place <= copy.last;
      if (!is_there || copy.bytes == 0 || copy.last - copy.first < least || !may_choose(copy.node)) continue;
      network_.forbid_copy(copy.node);
      is_new = true;
    }
    return is_new;
  }

  IdMap<NodeId, bool> again(const SaveNetwork::Cut& cut) const {
    IdMap<NodeId, bool> is_again(graph_.num_ids(), false);
    for (const NodeId node : graph_.nodes()) {
      is_again[node] = may_choose(node) ? cut.is_after[node] : is_tagged_again(node);
    }
    return is_again;
  }

  bool is_tagged_again(NodeId node) const { return decisions_.of.get(node).recompute && can_repeat_.get(node); }

  // Adds a forward value to the network. A recompute tag is carried out if backward needs the
  // value. If the tag cannot be carried out, remat reports the error or remark.
  void add(NodeId node) {
    const TagDecision& decision = decisions_.of.get(node);
    const bool is_call = graph_[node].is_call();
    const bool is_again = is_call && is_told(decision) && decision.recompute && is_repeatable(node);
    const bool can_repeat = is_again || (is_call && is_cheap(node) && is_repeatable(node));
    const NodeId base = is_call && can_repeat && !is_again ? base_of(node) : NodeId();
    if (is_call && is_told(decision) && !is_again) {
      // The base is saved, and the view needs no further memory.
      network_.forbid_copy(base.is_valid() ? base : node);
      can_repeat_[node] = base.is_valid();
    } else {
      if (!can_repeat) network_.forbid_copy(node);
      can_repeat_[node] = can_repeat;
    }
    network_.save_for(node, is_again ? SaveNetwork::kNever : cost(node));
    for_each_user(graph_, node, [&](NodeId user) {
      if (graph_[user].kind != NodeKind::kOutput) network_.feed(node, user);
    });
  }

  // The forward call that owns the only storage of a view. Invalid for a node that makes its own
  // storage, and for views of inputs or of several storages.
  NodeId base_of(NodeId node) const {
    const std::span<const BufferId> made = storages_.buffers(node);
    if (made.size() != 1 || !made[0].is_valid()) return NodeId();
    const Buffer& buffer = storages_.buffer(made[0]);
    const bool is_other =
        buffer.source == BufferSource::kNode && buffer.producer != node && !outermost_of(node).is_valid();
    if (!is_other || storages_.buffers(buffer.producer).size() != 1) return NodeId();
    const TagDecision& base = decisions_.of.get(buffer.producer);
    return is_told(base) && base.recompute ? NodeId() : buffer.producer;
  }

  // The call or container from which nested getitems take `node`, by repeated whole_of().
  NodeId outermost_of(NodeId node) const {
    NodeId whole;
    for (NodeId next = whole_of(graph_, node); next.is_valid(); next = whole_of(graph_, next)) whole = next;
    return whole;
  }

  // Saves the results of each call that is not recomputed.
  void keep_parts_of_kept() {
    for (const NodeId node : graph_.nodes()) {
      const NodeId whole = phases_.is_backward(node) ? NodeId() : outermost_of(node);
      if (!whole.is_valid() || !graph_[whole].is_call() || phases_.is_backward(whole)) continue;
      TagDecision& part = decisions_.of[node];
      const TagDecision& decision = decisions_.of.get(whole);
      // If writes to memory forbid recomputing a tagged call, the call is saved. If the operator
      // itself cannot be repeated, the tag is an error.
      const TagRule forbids = repeats_.obstacle(whole, graph_.output());
      if (is_told(decision) && decision.recompute && forbids != TagRule::kNone) {
        decisions_.of[whole].recompute = false;
        decisions_.of[whole].rule = forbids;
      }
      const bool is_kept =
          is_told(decision) ? !decisions_.of.get(whole).recompute : !is_cheap(whole) || !is_repeatable(whole);
      if (!part.recompute || !is_kept) continue;
      part.recompute = false;
      part.rule = TagRule::kInherited;
      if (graph_[node].tag != Tag::kNone) {
        decisions_.remarks.push_back({node, "part-of-saved",
                                      "saved, although tagged for recompute: it is a result of '%" +
                                          std::string(graph_.name_of(whole)) + "', which is not recomputed"});
      }
    }
  }

  bool is_repeatable(NodeId node) {
    return why_unrepeatable(graph_, node, effects_).empty() &&
           repeats_.obstacle(node, graph_.output()) == TagRule::kNone;
  }

  // Whether the call costs no more than reading and writing its data once.
  bool is_cheap(NodeId node) const {
    constexpr std::array kCheap = {ComputeClass::kView,          ComputeClass::kPointwise,
                                   ComputeClass::kReduction,     ComputeClass::kNormalization,
                                   ComputeClass::kGatherScatter, ComputeClass::kDataMovement,
                                   ComputeClass::kFactory,       ComputeClass::kScalar};
    const Op& op = graph_.op(node);
    if (op.in(OpSet::kComputeIntensive) || op.has_subgraphs) return false;
    return std::ranges::count(kCheap, op.compute) > 0 || op.view == ViewKind::kProjection;
  }

  // The bytes of the storages that the node makes. Returns kNever for a view that backward can
  // recompute from values that it has, and for a value whose results are saved one by one.
  int64_t cost(NodeId node) {
    const ValueKind kind = graph_.value(node).kind;
    if (!graph_[node].is_call() || kind == ValueKind::kSymbolic || kind == ValueKind::kScalar) return 0;
    const NodeId whole = outermost_of(node);
    const bool is_taken = whole.is_valid();
    const bool can_have = !is_taken || can_repeat_.get(whole);
    int64_t bytes = 0;
    bool is_on_others = false;
    for (const BufferId id : storages_.buffers(node)) {
      if (!id.is_valid()) continue;
      is_on_others = is_on_others || storages_.buffer(id).producer != (is_taken ? whole : node);
      if (!storages_.is_external(id)) bytes = saturating_add(bytes, bytes_of(id));
    }
    if (can_repeat_.get(node) && can_have && is_on_others) return SaveNetwork::kNever;
    return is_whole(node) ? SaveNetwork::kNever : bytes;
  }

  int64_t bytes_of(BufferId id) {
    SizeSource source = size_source(graph_, storages_, id);
    for (size_t steps = 0; source.kind == SizeKind::kLike && steps < storages_.num_buffers(); ++steps) {
      source = size_source(graph_, storages_, source.like);
    }
    const auto bytes_with = [&](const SymbolValues& values) {
      return source.kind == SizeKind::kLike ? std::nullopt : evaluate_size(graph_.module(), source, values);
    };
    if (const std::optional<int64_t> bytes = bytes_with(values_); bytes.has_value()) return *bytes;
    if (!is_unknown_.get(id)) ++choice_.num_unknown;
    is_unknown_[id] = true;
    return bytes_with(assumed_).value_or(kAssumedSize);
  }

  const Graph& graph_;
  Facts& facts_;
  const SymbolValues& symbols_;  // given by the caller
  const PhaseMap& phases_ = facts_.phases();
  EffectMap& effects_ = facts_.effects();
  const StorageMap& storages_ = facts_.storages();
  RepeatRules repeats_{graph_, phases_, storages_};
  SymbolValues values_ = symbol_values(graph_.module(), symbols_);
  SymbolValues assumed_ = sizes_of_symbols(graph_.module(), symbols_);  // for storages whose size is not known
  TagDecisions decisions_ = decide_tags(graph_, phases_, storages_, effects_, TagRules::kFxopt);
  Choice choice_;
  SaveNetwork network_{graph_};
  IdMap<NodeId, bool> can_repeat_;
  IdMap<BufferId, bool> is_unknown_;
};

}  // namespace

SymbolValues sizes_of_symbols(const Module& module, const SymbolValues& given) {
  SymbolValues values = symbol_values(module, given);
  for (const Symbol& symbol : module.symbols) {
    const int64_t least = std::max(kAssumedSize, symbol.min.value_or(kAssumedSize));
    values.try_emplace(symbol.name, std::min(least, symbol.max.value_or(least)));
  }
  return values;
}

Result<std::vector<Choice>> choose_min_cut(const Graph& graph, Facts& facts, const PassContext& context) {
  return MinCutChooser(graph, facts, context).run();
}

}  // namespace fxopt
