// Selective activation checkpointing on a traced graph.
//
// first   calls that `save` selects are MUST_SAVE, those that `recompute` selects MUST_RECOMPUTE
// full    every forward call is MUST_RECOMPUTE
// per-op  ops of the save set, which the caller may name, are MUST_SAVE, of a layer's matmuls each second is not; the
//         rest is PREFER_RECOMPUTE
//
// Both: a call that cannot be repeated, and a symbolic integer, is MUST_SAVE; a getitem or a wait takes its parent's
// tag; then what a strictly later layer (or explicit region) reads in order to recompute is MUST_SAVE. A node outside
// any layer counts as before the first one: the embedding is saved for layer 0.

#include "passes/tag/sac.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text.h"
#include "ir/alias/effects.h"
#include "ir/step/phases.h"
#include "ir/step/tag_rules.h"
#include "ir/step/tags.h"

namespace fxopt {
namespace {

// One pattern of `recompute` or `save`.
struct Selector {
  std::string_view module = "*";
  std::string_view op;
};

std::vector<Selector> parse_selectors(std::string_view text) {
  std::vector<Selector> selectors;
  for (const std::string_view pattern : split_list(text)) {
    const size_t colons = pattern.find("::");
    selectors.push_back(colons == std::string_view::npos
                            ? Selector{"*", pattern}
                            : Selector{pattern.substr(0, colons), pattern.substr(colons + 2)});
  }
  return selectors;
}

bool selects(const std::vector<Selector>& selectors, std::string_view path, std::string_view op) {
  return std::any_of(selectors.begin(), selectors.end(), [&](const Selector& selector) {
    return matches_pattern(path, selector.module) && matches_pattern(op, selector.op);
  });
}

class Tagger {
 public:
  Tagger(Facts& facts, const SacOptions& options, PassResult& result)
      : graph_(facts.graph()),
        options_(options),
        result_(result),
        phases_(facts.phases()),
        effects_(facts.effects()),
        excluded_(split_list(options.exclude)),
        uncounted_(split_list(options.recompute_matmuls_of)),
        save_ops_(split_list(options.save_ops)),
        saved_(parse_selectors(options.save)),
        recomputed_(parse_selectors(options.recompute)),
        tags_(graph_.num_ids(), Tag::kNone) {}

  // The tag each node should carry; nodes that have one keep it.
  IdMap<NodeId, Tag> run() {
    for (const NodeId node : graph_.nodes()) tags_[node] = choose(node);
    save_boundaries();
    return std::move(tags_);
  }

 private:
  Tag choose(NodeId node) {
    const Node& record = graph_[node];
    if (record.tag != Tag::kNone) return record.tag;
    if (!record.is_call() || phases_.is_backward(node)) return Tag::kNone;
    const std::string_view path = graph_.module().text(record.module_path);
    const Op& op = graph_.op(node);
    if (selects(saved_, path, op.name)) return Tag::kMustSave;
    if (selects(recomputed_, path, op.name)) return choose_selected(node);
    if (options_.policy == SacPolicy::kNone) return Tag::kNone;
    if (std::any_of(excluded_.begin(), excluded_.end(), [path](std::string_view m) { return is_within(path, m); })) {
      return Tag::kNone;
    }
    if (view_of_call(graph_, node) == ViewKind::kProjection || op.has(Effect::kWaits)) {
      const Arg* parent = graph_.arg(node, 0);
      return parent != nullptr && parent->is(ArgKind::kNode) ? tags_.get(parent->as_node()) : Tag::kNone;
    }
    if (is_symbol(node) || !why_unrepeatable(graph_, node, effects_).empty()) return Tag::kMustSave;
    return options_.policy == SacPolicy::kFull ? Tag::kMustRecompute : choose_per_op(node, op, path);
  }

  Tag choose_selected(NodeId node) {
    const std::string_view why = is_symbol(node) ? "is a symbolic integer" : why_unrepeatable(graph_, node, effects_);
    if (why.empty()) return Tag::kMustRecompute;
    result_.remark(graph_, node, "unrepeatable", "saved although `recompute` selects it: it " + std::string(why));
    return Tag::kMustSave;
  }

  bool is_symbol(NodeId node) const {
    const Value& value = graph_.value(node);
    return value.kind == ValueKind::kSymbolic && value.symbol_type == SymbolType::kInt;
  }

  Tag choose_per_op(NodeId node, const Op& op, std::string_view path) {
    if (!is_saved(op)) return Tag::kPreferRecompute;
    if (!op.in(OpSet::kTitanMatmul)) return Tag::kMustSave;
    const bool uncounted = std::any_of(uncounted_.begin(), uncounted_.end(), [path](std::string_view part) {
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
    if (save_ops_.empty()) return op.in(OpSet::kTitanSave);
    return std::find(save_ops_.begin(), save_ops_.end(), op.name) != save_ops_.end();
  }

  void save_boundaries() {
    for (const NodeId node : graph_.nodes()) {
      if (graph_[node].tag != Tag::kNone || !wants_recompute(tags_.get(node))) continue;
      const RegionKey key = region_key(graph_, node, TagRules::kFxopt);
      for (UseId use = graph_.first_use(node); use.is_valid(); use = graph_.use(use).next) {
        const NodeId user = graph_.use(use).user;
        if (phases_.is_backward(user) || !wants_recompute(tags_.get(user))) continue;
        const RegionKey user_key = region_key(graph_, user, TagRules::kFxopt);
        if (key.is_before(user_key) || (!key.exists && user_key.exists)) {
          tags_[node] = Tag::kMustSave;
          break;
        }
      }
    }
  }

  const Graph& graph_;
  const SacOptions& options_;
  PassResult& result_;
  const PhaseMap& phases_;
  EffectMap& effects_;
  const std::vector<std::string_view> excluded_;
  const std::vector<std::string_view> uncounted_;
  const std::vector<std::string_view> save_ops_;
  const std::vector<Selector> saved_, recomputed_;
  IdMap<NodeId, Tag> tags_;
  RegionKey layer_;
  int64_t matmuls_ = 0;
};

// Of what the caller gave: the defaults are for graphs that have such modules.
void remark_names(const Graph& graph, const SacOptions& options, PassResult& result) {
  const SacOptions defaults;
  const auto path = [&graph](NodeId node) { return graph.module().text(graph[node].module_path); };
  for (const auto& [option, text] : {std::pair("recompute", &options.recompute), std::pair("save", &options.save)}) {
    result.remark_unmatched(graph, option, split_list(*text), [&](NodeId node, std::string_view pattern) {
      return graph[node].is_call() && selects(parse_selectors(pattern), path(node), graph.op(node).name);
    });
  }
  result.remark_unmatched(
      graph, "save-ops", split_list(options.save_ops),
      [&graph](NodeId node, std::string_view name) { return graph[node].is_call() && graph.op(node).name == name; });
  if (options.exclude != defaults.exclude) {
    result.remark_unmatched(graph, "exclude", split_list(options.exclude),
                            [&path](NodeId node, std::string_view name) { return is_within(path(node), name); });
  }
  if (options.recompute_matmuls_of != defaults.recompute_matmuls_of) {
    result.remark_unmatched(
        graph, "recompute-matmuls-of", split_list(options.recompute_matmuls_of),
        [&path](NodeId node, std::string_view name) { return path(node).find(name) != std::string_view::npos; });
  }
}

}  // namespace

Status SacOptions::check() const {
  if (recompute_every >= 0) return ok_status();
  Error error{ErrorCode::kBadOptionValue, "'recompute-every' of 'sac' must be 0 or more", "2 is torchtitan's rule", {}};
  error.where.field = "recompute-every";
  return error;
}

Result<PassResult> sac(Graph& graph, const SacOptions& options, PassContext& context) {
  PassResult result;
  remark_names(graph, options, result);
  const IdMap<NodeId, Tag> tags = Tagger(context.facts.of(graph), options, result).run();
  for (const NodeId node : graph.nodes()) {
    if (graph[node].tag != Tag::kNone || tags[node] == Tag::kNone) continue;
    graph[node].tag = tags[node];
    result.count(wants_recompute(tags[node]) ? "tagged-recompute" : "tagged-save");
  }
  return result;
}

}  // namespace fxopt
