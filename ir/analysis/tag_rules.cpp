// The one function that decides from tags. Stored tags are facts and stay as they are.
//
// Rules in the order they are tried for a forward node; the first that matches decides.
//    1  a tag on a backward node                                   ignored, remark
//    2  a symbolic integer                                         saved
//    6  a region's output read by a later region; a hooked output  saved
//    9  custom.ap_must_save, no tag                                saved (against a tag, 7 and 8 win)
//    3  tagged for recompute and not repeatable                    error, once backward needs it
//    4  random with a recorded slot                                recomputed with that slot
//    7, 8, 10  MUST_RECOMPUTE, PREFER_RECOMPUTE, MUST_SAVE, PREFER_SAVE
//   11  untagged getitem, wait, view                               as its parent
//   13  untagged collective                                        saved
//   14  offload tags                                               saved here; `offload` moves them
// Rule 3 stands after the rules that save, so that only a value which would really be recomputed is refused.

#include "ir/analysis/tag_rules.h"

#include <charconv>
#include <utility>

#include "ir/analysis/effects.h"
#include "ir/analysis/tags.h"
#include "ir/graph/module.h"

namespace fxopt {
namespace {

bool is_symbolic_value(const Graph& graph, NodeId node) {
  const Value& value = graph.value(node);
  return value.kind == ValueKind::kSymbolic && value.symbol_type != SymbolType::kFloat;
}

// custom == {..., "ap_must_save": True, ...}
bool has_ap_must_save(const Graph& graph, NodeId node) {
  const Arg* custom = graph.meta_entry(node, "custom");
  if (custom == nullptr || !custom->is(ArgKind::kDict)) return false;
  const std::span<const Arg> items = graph.pool().children(*custom);
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (items[i].is(ArgKind::kString) && graph.module().text(items[i].as_string()) == "ap_must_save") {
      return items[i + 1].is(ArgKind::kBool) && items[i + 1].as_bool();
    }
  }
  return false;
}

class Decider {
 public:
  Decider(const Graph& graph, const PhaseMap& phases, const StorageMap& storages, EffectMap& effects, TagRules rules)
      : graph_(graph), phases_(phases), storages_(storages), effects_(effects), rules_(rules) {
    decisions_.of = IdMap<NodeId, TagDecision>(graph.num_ids());
  }

  TagDecisions run() {
    for (const NodeId node : graph_.nodes()) inherit(node);
    for (const NodeId node : graph_.nodes()) decide(node);
    if (rules_ == TagRules::kFxopt) save_bases_of_saved_views();
    return std::move(decisions_);
  }

 private:
  // Effective tags first: a boundary is judged by what its users are tagged.
  void inherit(NodeId node) {
    const Tag own = graph_[node].tag;
    TagDecision& decision = decisions_.of[node];
    decision.effective = own;
    if (own != Tag::kNone || rules_ == TagRules::kTorch || !follows_parent(node)) return;
    const Arg* parent = graph_.arg(node, 0);
    if (parent == nullptr || !parent->is(ArgKind::kNode)) return;
    decision.effective = decisions_.of.get(parent->as_node()).effective;
  }

  bool follows_parent(NodeId node) const {
    if (!graph_[node].is_call() || phases_.is_backward(node)) return false;
    switch (view_of_call(graph_, node)) {
      case ViewKind::kProjection:
      case ViewKind::kView:
      case ViewKind::kMultiView:
        return true;
      case ViewKind::kIdentity:
        return graph_.op(node).writes.empty();
      case ViewKind::kMaybeView: {
        const std::span<const BufferId> made = storages_.buffers(node);
        return made.size() == 1 && storages_.buffer(made[0]).producer != node;
      }
      case ViewKind::kNone:
        return false;
    }
    return false;
  }

  void decide(NodeId node) {
    TagDecision& decision = decisions_.of[node];
    const Tag own = graph_[node].tag;
    if (rules_ == TagRules::kFxopt && phases_.is_backward(node)) {
      if (own != Tag::kNone) {
        remark(node, "tag-on-backward", "a tag on a backward node is ignored");
        decision.rule = kRuleBackwardTag;
      }
      return;
    }
    if (decision.effective == Tag::kNone) {
      if (graph_[node].is_call() && graph_.op(node).has(Effect::kCollective)) decision.rule = kRuleCollective;
      if (has_ap_must_save(graph_, node)) decision.rule = kRuleApMustSave;
      return;
    }
    decision.rule = rule_that_saves(node, decision);
    if (decision.rule != 0) return;
    if (!wants_recompute(decision.effective)) {
      const bool offload = decision.effective == Tag::kMustOffload || decision.effective == Tag::kPreferOffload;
      decision.rule = offload ? kRuleOffload : kRuleMustSave;
      return;
    }
    decide_recompute(node, decision);
  }

  uint8_t rule_that_saves(NodeId node, const TagDecision& decision) const {
    if (rules_ == TagRules::kFxopt && is_symbolic_value(graph_, node)) return kRuleSymbol;
    if (!wants_recompute(decision.effective)) return 0;
    if (is_boundary(node)) return kRuleRegionBoundary;
    return 0;
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
    decision.rule = decision.effective == Tag::kMustRecompute ? kRuleMustRecompute : kRulePreferRecompute;
    if (graph_[node].tag == Tag::kNone) decision.rule = kRuleInherited;
    if (rules_ == TagRules::kTorch || !graph_[node].is_call()) return;
    const std::string_view reason = why_unrepeatable(graph_, node, effects_);
    if (reason.empty()) {
      if (is_random_call(graph_, node)) decision.rule = kRuleRandomSlot;
      return;
    }
    if (effects_.has(node, Effect::kOpaque) && decision.effective == Tag::kPreferRecompute) {
      decision.recompute = false;
      decision.rule = kRuleUnrepeatable;
      remark(node, "opaque-saved", "saved although tagged PREFER_RECOMPUTE: it " + std::string(reason));
      return;
    }
    decisions_.unrepeatable.push_back({node, reason});
  }

  // A saved view that backward reads keeps its whole storage, so recomputing what made the storage would only hold it
  // twice.
  void save_bases_of_saved_views() {
    IdMap<NodeId, bool> read_by_backward(graph_.num_ids(), false);
    for (const NodeId node : graph_.nodes()) {
      if (!phases_.is_backward(node)) continue;
      graph_.for_each_input(node, [&read_by_backward](NodeId input) { read_by_backward[input] = true; });
    }
    for (const NodeId node : graph_.nodes()) {
      const TagDecision& decision = decisions_.of.get(node);
      if (decision.effective == Tag::kNone || decision.recompute || !read_by_backward.get(node)) continue;
      for (const BufferId buffer : storages_.buffers(node)) save_base(node, storages_.buffer(buffer));
    }
  }

  // Only a base with this one storage: of several, the others are worth recomputing.
  void save_base(NodeId view, const Buffer& buffer) {
    if (buffer.source != BufferSource::kNode || buffer.producer == view) return;
    TagDecision& base = decisions_.of[buffer.producer];
    if (!base.recompute || storages_.buffers(buffer.producer).size() != 1) return;
    base.recompute = false;
    base.rule = kRuleInherited;
  }

  void remark(NodeId node, std::string_view code, std::string text) {
    decisions_.remarks.push_back({node, code, std::move(text)});
  }

  const Graph& graph_;
  const PhaseMap& phases_;
  const StorageMap& storages_;
  EffectMap& effects_;
  TagRules rules_;
  TagDecisions decisions_;
};

}  // namespace

std::string_view why_unrepeatable(const Graph& graph, NodeId node, EffectMap& effects_of) {
  if (!graph[node].is_call()) return {};
  const Effect effects = effects_of.of(node);
  if (has_effect(effects, Effect::kMutates)) return "writes its argument";
  if (has_effect(effects, kUndescribed)) return "is an op nobody described, which may have effects";
  if (has_effect(effects, Effect::kAsserts)) return "only checks a condition";
  if (has_effect(effects, Effect::kBarrier)) return "is a barrier";
  if (has_effect(effects, Effect::kRandom)) {
    const NodeExtra* extra = graph.extra(node);
    const bool recorded = extra != nullptr && extra->rng.has_value() && extra->rng->offset.is_known();
    if (!recorded) return "draws random numbers from no recorded slot";
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
                         TagRules rules) {
  return Decider(graph, phases, storages, effects, rules).run();
}

}  // namespace fxopt
