// Decides from tags which values are saved or recomputed. The rules of kRules are tried in order.
// The tags in the graph stay unchanged. Whether an op can be repeated is checked last, so that an
// error is reported only for values that would be recomputed.

#include "ir/step/tag_rules.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "ir/alias/collectives.h"
#include "ir/alias/effects.h"
#include "ir/graph/module.h"
#include "ir/step/tags.h"

namespace fxopt {
namespace {

constexpr TagRuleText kUntagged = {TagRule::kNone, "no tag says otherwise", "tag it"};

constexpr TagRuleText kRules[] = {
    {TagRule::kBackwardTag, "it is a backward node, where tags mean nothing", "tag the forward value"},
    {TagRule::kReplay, "an earlier partition decided this (ap_must_save)", "tag it MUST_RECOMPUTE"},
    {TagRule::kSymbol, "it is a symbolic integer, which is always saved", ""},
    {TagRule::kRegionBoundary, "a later region reads it to recompute, so it is saved at the boundary",
     "PyTorch also saves outputs of checkpoint regions; to recompute it, put it and its consumer into one region"},
    {TagRule::kMustRecompute, "MUST_RECOMPUTE", ""},
    {TagRule::kMustSave, "MUST_SAVE", "tag it MUST_RECOMPUTE"},
    {TagRule::kPreference, "its preference is carried out", ""},
    {TagRule::kInherited, "it shares its memory or value with a tagged or marked value",
     "give the view and its base the same tag"},
    {TagRule::kCollective, "collectives are saved unless a tag says otherwise", "tag it PREFER_RECOMPUTE"},
    {TagRule::kOffload, "offloaded values are kept", ""},
    {TagRule::kUnrepeatable, "a second run would not return the same values", "tag it MUST_SAVE"},
    {TagRule::kRandomSlot,
     "the file records the generator offset of its random numbers, so the same numbers are drawn again", ""},
    {TagRule::kWritten, "an operand or the result is written in place, and a copy would miss the write",
     "write to a clone"},
    {TagRule::kReturned, "several outputs share its memory, and backward computes one of these outputs",
     "return a clone"},
    {TagRule::kKeptAnyway, "it is a view of memory that stays live anyway: a copy would free nothing",
     "tag the base of the view"},
    {TagRule::kExcluded, "it is read only by modules that `exclude` lists", "take the module out of `exclude`"},
    {TagRule::kShape, "backward reads only its shape, so nothing is recomputed", ""},
    {TagRule::kCut, "the partitioner decides about it", "tag it MUST_SAVE or MUST_RECOMPUTE"},
    {TagRule::kMerged, "it was merged with another node", ""},
};

bool is_symbolic_value(const Graph& graph, NodeId node) {
  const Value& value = graph.value(node);
  return value.kind == ValueKind::kSymbolic && value.symbol_type != SymbolType::kFloat;
}

class Decider {
 public:
  Decider(const Graph& graph, const PhaseMap& phases, const StorageMap& storages, EffectMap& effects, TagRules rules,
          PreferRecompute prefer)
      : graph_(graph),
        phases_(phases),
        storages_(storages),
        effects_(effects),
        rules_(rules),
        prefer_wins_(prefer == PreferRecompute::kWins || prefer == PreferRecompute::kRecompute) {
    decisions_.of = IdMap<NodeId, TagDecision>(graph.num_ids());
    decisions_.marks = find_marks(graph_, phases_);
  }

  TagDecisions run() {
    for (const NodeId node : graph_.nodes()) inherit(node);
    for (const NodeId node : graph_.nodes()) decide(node);
    if (rules_ == TagRules::kFxopt) save_bases_of_saved_views();
    return std::move(decisions_);
  }

 private:
  // Effective tags are computed first, because the rule about region boundaries depends on the tags
  // of a value's users.
  void inherit(NodeId node) {
    const Tag own = graph_[node].tag;
    TagDecision& decision = decisions_.of[node];
    decision.effective = is_saved_by_mark(node) && wants_recompute(own) ? Tag::kNone : own;
    if (own != Tag::kNone || rules_ == TagRules::kTorch || !follows_parent(node)) return;
    const Arg* parent = graph_.arg(node, 0);
    if (parent == nullptr || !parent->is(ArgKind::kNode)) return;
    decision.effective = decisions_.of.get(parent->as_node()).effective;
  }

  // Whether the value is saved because of its mark.
  bool is_saved_by_mark(NodeId node) const {
    if (rules_ == TagRules::kTorch || !decisions_.marks.is_saved.get(node)) return false;
    const Tag own = graph_[node].tag;
    if (own == Tag::kMustRecompute) return is_policy_tag(graph_, node);
    return own != Tag::kPreferRecompute || !prefer_wins_;
  }

  bool follows_parent(NodeId node) const {
    if (!graph_[node].is_call() || phases_.is_backward(node)) return false;
    const ViewKind view = view_of_call(graph_, node);
    if (view == ViewKind::kIdentity) return graph_.op(node).writes.empty();
    if (view != ViewKind::kMaybeView) return view != ViewKind::kNone;
    const std::span<const BufferId> made = storages_.buffers(node);
    return made.size() == 1 && storages_.buffer(made[0]).producer != node;
  }

  void decide(NodeId node) {
    TagDecision& decision = decisions_.of[node];
    const Tag own = graph_[node].tag;
    if (rules_ == TagRules::kFxopt && phases_.is_backward(node)) {
      if (own != Tag::kNone) {
        remark(node, "tag-on-backward", "a tag on a backward node is ignored");
        decision.rule = TagRule::kBackwardTag;
      }
      return;
    }
    if (is_saved_by_mark(node)) {
      decision.rule = own == Tag::kMustSave ? TagRule::kMustSave : TagRule::kReplay;
      return;
    }
    if (decision.effective == Tag::kNone) {
      if (graph_[node].is_call() && graph_.op(node).has(Effect::kCollective)) decision.rule = TagRule::kCollective;
      return;
    }
    decision.rule = rule_that_saves(node, decision);
    if (decision.rule != TagRule::kNone) return;
    if (!wants_recompute(decision.effective)) {
      const bool offload = decision.effective == Tag::kMustOffload || decision.effective == Tag::kPreferOffload;
      const TagRule save = decision.effective == Tag::kPreferSave ? TagRule::kPreference : TagRule::kMustSave;
      decision.rule = offload ? TagRule::kOffload : save;
      return;
    }
    decide_recompute(node, decision);
  }

  TagRule rule_that_saves(NodeId node, const TagDecision& decision) const {
    if (rules_ == TagRules::kFxopt && is_symbolic_value(graph_, node)) return TagRule::kSymbol;
    if (!wants_recompute(decision.effective)) return TagRule::kNone;
    return is_boundary(node) ? TagRule::kRegionBoundary : TagRule::kNone;
  }

  bool is_boundary(NodeId node) const {
    const RegionKey key = region_key(graph_, node, rules_);
    const RegionId region = graph_[node].region;
    const bool hooked = region.is_valid() && graph_.module().region(region).has_backward_hook;
    if (!key.exists && !hooked) return false;
    bool recomputed_user = false;
    for (UseId use = graph_.first_use(node); use.is_valid(); use = graph_.use(use).next) {
      const NodeId user = graph_.use(use).user;
      if (rules_ == TagRules::kFxopt && phases_.is_backward(user)) continue;
      if (!wants_recompute(decisions_.of[user].effective)) continue;
      recomputed_user = true;
      if (key.is_before(region_key(graph_, user, rules_))) return true;
    }
    return hooked && !recomputed_user;
  }

  void decide_recompute(NodeId node, TagDecision& decision) {
    decision.recompute = true;
    decision.rule = decision.effective == Tag::kMustRecompute ? TagRule::kMustRecompute : TagRule::kPreference;
    if (graph_[node].tag == Tag::kNone) decision.rule = TagRule::kInherited;
    if (rules_ == TagRules::kTorch || !graph_[node].is_call()) return;
    const std::string_view reason = why_unrepeatable(graph_, node, effects_);
    if (reason.empty()) {
      if (is_random_call(graph_, node)) decision.rule = TagRule::kRandomSlot;
      return;
    }
    if (decision.effective == Tag::kPreferRecompute) {
      decision.recompute = false;
      decision.rule = TagRule::kUnrepeatable;
      remark(node, "unrepeatable",
             "saved in spite of the tag PREFER_RECOMPUTE, because the node " + std::string(reason));
      return;
    }
    decisions_.unrepeatable.push_back({node, reason});
  }

  // A saved forward view that backward reads keeps its whole storage live. Recomputing the
  // storage's producer would only use the memory twice, so the producer is saved.
  void save_bases_of_saved_views() {
    IdMap<NodeId, bool> read_by_backward(graph_.num_ids(), false);
    for (const NodeId node : graph_.nodes()) {
      if (!phases_.is_backward(node)) continue;
      graph_.for_each_input(node, [&read_by_backward](NodeId input) { read_by_backward[input] = true; });
    }
    for (const NodeId node : graph_.nodes()) {
      const TagDecision& decision = decisions_.of.get(node);
      const bool is_decided = decision.effective != Tag::kNone || is_saved_by_mark(node);
      if (!is_decided || decision.recompute || !read_by_backward.get(node)) continue;
      if (phases_.is_backward(node)) continue;
      for (const BufferId buffer : storages_.buffers(node)) save_base(node, storages_.buffer(buffer));
    }
  }

  // Saves a base only if it has a single storage. Recomputing a base with several storages can free
  // the other storages.
  void save_base(NodeId view, const Buffer& buffer) {
    if (buffer.source != BufferSource::kNode || buffer.producer == view) return;
    TagDecision& base = decisions_.of[buffer.producer];
    if (!base.recompute || storages_.buffers(buffer.producer).size() != 1) return;
    base.recompute = false;
    // A view that must not run again is an in-place write to the base.
    base.rule = decisions_.of[view].rule == TagRule::kUnrepeatable ? TagRule::kWritten : TagRule::kInherited;
  }

  void remark(NodeId node, std::string_view code, std::string text) {
    decisions_.remarks.push_back({node, code, std::move(text)});
  }

  const Graph& graph_;
  const PhaseMap& phases_;
  const StorageMap& storages_;
  EffectMap& effects_;
  TagRules rules_;
  bool prefer_wins_;
  TagDecisions decisions_;
};

}  // namespace

std::span<const TagRuleText> tag_rules() { return kRules; }

const TagRuleText& tag_rule(TagRule rule) {
  const auto* found = std::ranges::find_if(kRules, [rule](const TagRuleText& row) { return row.rule == rule; });
  return found == std::end(kRules) ? kUntagged : *found;
}

bool is_policy_tag(const Graph& graph, NodeId node) {
  const NodeExtra* extra = graph.extra(node);
  return extra != nullptr && extra->tag_source.has_value() && extra->tag_source->pass.is_valid();
}

std::string_view why_unrepeatable(const Graph& graph, NodeId node, EffectMap& effects_of) {
  if (!graph[node].is_call()) return {};
  const Effect effects = effects_of.of(node);
  if (has_effect(effects, Effect::kMutates)) return "writes its argument";
  if (has_effect(effects, kUndescribed)) return "may have side effects: fxopt has no description of its operator";
  if (is_message(graph, node)) return "sends or receives a message, and the peer rank takes part only once";
  if (has_effect(effects, Effect::kAsserts)) return "only checks a condition";
  if (has_effect(effects, Effect::kBarrier)) return "is a barrier";
  if (has_effect(effects, Effect::kRandom)) {
    if (!is_recorded_draw(graph, node)) {
      return "draws random numbers, and the file does not record the generator offset of this draw";
    }
  }
  return {};
}

int64_t layer_of(std::string_view module_path) {
  while (!module_path.empty()) {
    const size_t dot = module_path.find('.');
    const std::string_view component = module_path.substr(0, dot);
    int64_t number = 0;
    const std::from_chars_result parsed =
        std::from_chars(component.data(), component.data() + component.size(), number);
    if (!component.empty() && parsed.ec == std::errc() && parsed.ptr == component.data() + component.size() &&
        number >= 0) {
      return number;
    }
    if (dot == std::string_view::npos) break;
    module_path.remove_prefix(dot + 1);
  }
  return -1;
}

RegionKey region_key(const Graph& graph, NodeId node, TagRules rules) {
  const RegionId region = graph[node].region;
  if (region.is_valid() && graph.module().region(region).id.has_value()) {
    return {true, true, *graph.module().region(region).id};
  }
  if (rules == TagRules::kTorch) return {};
  const int64_t layer = layer_of(graph.module().text(graph[node].module_path));
  return {layer >= 0, false, layer};
}

TagDecisions decide_tags(const Graph& graph, const PhaseMap& phases, const StorageMap& storages, EffectMap& effects,
                         TagRules rules, PreferRecompute prefer) {
  return Decider(graph, phases, storages, effects, rules, prefer).run();
}

}  // namespace fxopt
