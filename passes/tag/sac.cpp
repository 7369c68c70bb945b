// Selective activation checkpointing on a traced graph.
//
// Calls that the option `save` selects are tagged MUST_SAVE, and calls that `recompute` selects are
// tagged MUST_RECOMPUTE. The policies full and per-op tag the other forward calls:
//
// full    Every call is MUST_RECOMPUTE.
// per-op  Ops to be saved (option save-ops) are MUST_SAVE, except every N-th matmul of a layer
//         (option recompute-every). Other calls are PREFER_RECOMPUTE.
//
// Under both policies, a call that cannot be repeated, or that returns a symbolic integer, is
// MUST_SAVE. A getitem or a wait takes the tag of its input. After that, a value becomes MUST_SAVE
// if a recomputed call of another layer or region reads it. For example, the embedding is outside
// of all layers, and is saved for layer 0. layers.h defines the layer of a call without a path.

#include "passes/tag/sac.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text.h"
#include "ir/alias/effects.h"
#include "ir/step/phases.h"
#include "ir/step/tag_rules.h"
#include "ir/step/tags.h"
#include "ir/values/call_args.h"
#include "ir/values/values.h"
#include "passes/pass/nodes.h"
#include "passes/tag/layers.h"

namespace fxopt {
namespace {

class SacTagger {
 public:
  SacTagger(Facts& facts, const SacOptions& options, const PolicyTagger& policy, PassResult& result)
      : facts_(facts), options_(options), policy_(policy), result_(result) {}

  // Returns the tag that each node should have. Nodes with a tag keep their tag.
  IdMap<NodeId, Tag> run() {
    for (const NodeId node : graph_.nodes()) tags_[node] = choose(node);
    warn_without_layers();
    if (options_.save_first_residual) save_first_residuals();
    save_boundaries();
    remark_on_head();
    return std::move(tags_);
  }
  bool is_selected(NodeId node) const { return is_selected_.get(node); }

 private:
  // The tag that the node will have: a marked value stays untagged.
  Tag tag_of(NodeId node) const { return policy_.is_kept(node) ? Tag::kNone : tags_.get(node); }

  Tag choose(NodeId node) {
    const Node& record = graph_[node];
    if (record.tag != Tag::kNone) return record.tag;
    if (!record.is_call() || phases_.is_backward(node)) return Tag::kNone;
    const std::string_view path = graph_.module().text(record.module_path);
    const Op& op = graph_.op(node);
    is_selected_[node] = matches_any(options_.save, path, op.name) || matches_any(options_.recompute, path, op.name);
    if (matches_any(options_.save, path, op.name)) return Tag::kMustSave;
    if (is_selected_[node]) return choose_selected(node);
    if (options_.policy == SacPolicy::kNone) return Tag::kNone;
    if (is_excluded(path)) return Tag::kNone;
    if (view_of_call(graph_, node) == ViewKind::kProjection || op.has(Effect::kWaits)) {
      const NodeId parent = first_argument(graph_, node);
      return parent.is_valid() ? tag_of(parent) : Tag::kNone;
    }
    if (is_symbol(node) || !why_unrepeatable(graph_, node, effects_).empty()) return Tag::kMustSave;
    const Tag tag = options_.policy == SacPolicy::kFull ? Tag::kMustRecompute : choose_per_op(node, op, path);
    return with_strength(tag, options_.strength);
  }

  // Without layers, all of forward is one region. Backward would start by recomputing all of
  // forward, which saves little memory.
  void warn_without_layers() {
    bool is_recomputed = false;
    for (const NodeId node : graph_.nodes()) {
      if (!graph_[node].is_call() || phases_.is_backward(node)) continue;
      if (region_key(graph_, node, TagRules::kFxopt).exists) return;
      is_recomputed = is_recomputed || (wants_recompute(tag_of(node)) && !is_selected(node));
    }
    if (!is_recomputed) return;
    result_.warn(graph_, "no-layers",
                 "no layers found: no forward node has a number in its module path or belongs to a checkpoint region. "
                 "No value is saved at the border of a layer");
  }

  bool is_excluded(std::string_view path) const {
    return std::ranges::any_of(options_.exclude, [path](const std::string& module) { return is_within(path, module); });
  }

  // Reports the first call after the last layer that the policy recomputes, if the default of
  // `exclude` names no module of the graph.
  void remark_on_head() {
    if (options_.exclude != SacOptions().exclude) return;
    NodeId head;
    bool has_layer = false;
    for (const NodeId node : graph_.nodes()) {
      if (!graph_[node].is_call() || phases_.is_backward(node)) continue;
      if (is_excluded(graph_.module().text(graph_[node].module_path))) return;
      const bool is_in_layer = region_key(graph_, node, TagRules::kFxopt).exists;
      has_layer = has_layer || is_in_layer;
      if (is_in_layer) head = {};
      const bool is_chosen = graph_[node].tag == Tag::kNone && !is_selected(node);
      if (has_layer && !is_in_layer && !head.is_valid() && is_chosen && wants_recompute(tag_of(node))) head = node;
    }
    if (!head.is_valid()) return;
    result_.remark(graph_, head, "no-head",
                   "this call is after the last layer and is tagged for recompute, because the graph has no module "
                   "lm_head or loss (the "
                   "default of `exclude`). To save the values of the model's head, name its module in `exclude`");
  }

  Tag choose_selected(NodeId node) {
    const std::string_view why = is_symbol(node) ? "is a symbolic integer" : why_unrepeatable(graph_, node, effects_);
    if (why.empty()) return Tag::kMustRecompute;
    result_.remark(graph_, node, "unrepeatable", "saved, although `recompute` selects it: it " + std::string(why));
    return Tag::kMustSave;
  }

  bool is_symbol(NodeId node) const {
    const Value& value = graph_.value(node);
    return value.kind == ValueKind::kSymbolic && value.symbol_type == SymbolType::kInt;
  }

  Tag choose_per_op(NodeId node, const Op& op, std::string_view path) {
    if (!is_saved(op)) return Tag::kPreferRecompute;
    if (!op.in(OpSet::kTitanMatmul)) return Tag::kMustSave;
    const bool uncounted = std::ranges::any_of(options_.recompute_matmuls_of, [path](const std::string& part) {
      return path.find(part) != std::string_view::npos;
    });
    if (uncounted) return Tag::kPreferRecompute;
    const RegionKey key = region_key(graph_, node, TagRules::kFxopt);
    if (key.exists && (!layer_.exists || layer_.is_before(key) || key.is_before(layer_))) {
      layer_ = key;
      matmuls_ = 0;
    }
    ++matmuls_;
    const bool recompute = options_.recompute_every > 0 && matmuls_ % options_.recompute_every == 0;
    return recompute ? Tag::kPreferRecompute : Tag::kMustSave;
  }

  bool is_saved(const Op& op) const {
    if (options_.save_ops.empty()) return op.in(OpSet::kTitanSave);
    return std::ranges::count(options_.save_ops, op.name) > 0;
  }

  void save_first_residuals() {
    std::vector<RegionKey> done;
    for (const NodeId node : graph_.nodes()) {
      if (!graph_[node].is_call() || phases_.is_backward(node) || graph_.op(node).name != "aten.add.Tensor") continue;
      const RegionKey key = region_key(graph_, node, TagRules::kFxopt);
      if (!key.exists || (!done.empty() && is_same(done.back(), key)) || !adds_outside(node, key)) continue;
      done.push_back(key);
      if (graph_[node].tag == Tag::kNone) tags_[node] = Tag::kMustSave;
    }
    if (done.empty()) {
      result_.warn(graph_, "no-residual",
                   "no residual sum is saved: no layer adds its input to a value that the layer computes");
    }
  }
  static bool is_same(const RegionKey& a, const RegionKey& b) { return !a.is_before(b) && !b.is_before(a); }

  // Whether one operand was made outside of the layer and the other inside, with equal sizes.
  bool adds_outside(NodeId add, const RegionKey& key) const {
    bool is_outside[2] = {};
    const Tensor* tensors[2] = {};
    for (size_t i = 0; i < 2; ++i) {
      const NodeId operand = CallArgs(graph_, add)[i].as_node();
      tensors[i] = operand.is_valid() ? single_tensor(graph_, operand) : nullptr;
      if (tensors[i] == nullptr) return false;
      const RegionKey maker = region_key(graph_, operand, TagRules::kFxopt);
      is_outside[i] = !maker.exists || !is_same(maker, key);
    }
    return is_outside[0] != is_outside[1] && same_sizes(graph_.module(), tensors[0]->sizes, tensors[1]->sizes);
  }

  void save_boundaries() {
    const Layers layers(graph_, phases_);
    for (const NodeId node : graph_.nodes()) {
      if (graph_[node].tag != Tag::kNone || !wants_recompute(tag_of(node))) continue;
      bool crosses = false;
      for_each_user(graph_, node, [&](NodeId user) {
        crosses =
            crosses || (!phases_.is_backward(user) && wants_recompute(tag_of(user)) && layers.crosses(node, user));
      });
      if (crosses) tags_[node] = Tag::kMustSave;
    }
  }

  Facts& facts_;
  const SacOptions& options_;
  const PolicyTagger& policy_;
  PassResult& result_;
  const Graph& graph_ = facts_.graph();
  const PhaseMap& phases_ = facts_.phases();
  EffectMap& effects_ = facts_.effects();
  IdMap<NodeId, Tag> tags_{graph_.num_ids(), Tag::kNone};
  RegionKey layer_;
  IdMap<NodeId, bool> is_selected_{graph_.num_ids(), false};
  int64_t matmuls_ = 0;
};

// Warns about names in options that match nothing. Default names are not checked.
void remark_names(const Graph& graph, const SacOptions& options, PassResult& result) {
  const SacOptions defaults;
  const auto path = [&graph](NodeId node) { return graph.module().text(graph[node].module_path); };
  const std::vector<std::pair<std::string_view, const std::vector<NodePattern>*>> patterns = {
      {"recompute", &options.recompute}, {"save", &options.save}};
  for (const auto& [option, list] : patterns) {
    std::vector<std::string> texts;
    for (const NodePattern& pattern : *list) texts.push_back(pattern.text());
    result.remark_unmatched(graph, option, texts, [&](NodeId node, std::string_view text) {
      return graph[node].is_call() && NodePattern::parse(text)->matches(path(node), graph.op(node).name);
    });
  }
  result.remark_unmatched(graph, "save-ops", options.save_ops, [&graph](NodeId node, std::string_view name) {
    return graph[node].is_call() && graph.op(node).name == name;
  });
  if (options.exclude != defaults.exclude) {
    result.remark_unmatched(graph, "exclude", options.exclude,
                            [&path](NodeId node, std::string_view name) { return is_within(path(node), name); });
  }
  if (options.recompute_matmuls_of != defaults.recompute_matmuls_of) {
    result.remark_unmatched(
        graph, "recompute-matmuls-of", options.recompute_matmuls_of,
        [&path](NodeId node, std::string_view name) { return path(node).find(name) != std::string_view::npos; });
  }
}

}  // namespace

Status SacOptions::check() const {
  if (std::optional<Error> error = check_policy("sac", strength, marked)) return *std::move(error);
  if (recompute_every >= 0) return ok_status();
  Error error{ErrorCode::kBadOptionValue, "'recompute-every' of 'sac' must be 0 or more", "2 is torchtitan's rule", {}};
  error.where.field = "recompute-every";
  return error;
}

Result<PassResult> sac(Graph& graph, const SacOptions& options, PassContext& context) {
  PassResult result;
  remark_names(graph, options, result);
  Facts& facts = context.facts.of(graph);
  PolicyTagger policy(graph, facts.phases(), options.marked, "sac", result);
  SacTagger tagger(facts, options, policy, result);
  const IdMap<NodeId, Tag> tags = tagger.run();
  for (const NodeId node : graph.nodes()) {
    if (graph[node].tag != Tag::kNone || tags[node] == Tag::kNone) continue;
    policy.tag(node, tags[node], !tagger.is_selected(node));
  }
  policy.finish();
  return result;
}

}  // namespace fxopt
