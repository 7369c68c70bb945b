// Selective activation checkpointing on a traced graph.
//
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
#include "ir/analysis/effects.h"
#include "ir/analysis/phases.h"
#include "ir/analysis/tag_rules.h"
#include "ir/analysis/tags.h"

namespace fxopt {
namespace {

class Tagger {
 public:
  Tagger(const Graph& graph, const SacOptions& options)
      : graph_(graph),
        options_(options),
        phases_(resolve_phases(graph)),
        effects_(graph),
        excluded_(split_list(options.exclude)),
        uncounted_(split_list(options.recompute_matmuls_of)),
        save_ops_(split_list(options.save_ops)),
        tags_(graph.num_ids(), Tag::kNone) {}

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
    if (std::any_of(excluded_.begin(), excluded_.end(), [path](std::string_view m) { return is_within(path, m); })) {
      return Tag::kNone;
    }
    const Op& op = graph_.op(node);
    if (view_of_call(graph_, node) == ViewKind::kProjection || op.has(Effect::kWaits)) {
      const Arg* parent = graph_.arg(node, 0);
      return parent != nullptr && parent->is(ArgKind::kNode) ? tags_.get(parent->as_node()) : Tag::kNone;
    }
    if (is_symbol(node) || !why_unrepeatable(graph_, node, effects_).empty()) return Tag::kMustSave;
    return options_.policy == SacPolicy::kFull ? Tag::kMustRecompute : choose_per_op(node, op, path);
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
  const PhaseMap phases_;
  EffectMap effects_;
  const std::vector<std::string_view> excluded_;
  const std::vector<std::string_view> uncounted_;
  const std::vector<std::string_view> save_ops_;
  IdMap<NodeId, Tag> tags_;
  RegionKey layer_;
  int64_t matmuls_ = 0;
};

// Of what the caller gave: the defaults are for graphs that have such modules.
void remark_names(const Graph& graph, const SacOptions& options, PassResult& result) {
  const SacOptions defaults;
  const auto path = [&graph](NodeId node) { return graph.module().text(graph[node].module_path); };
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

Result<PassResult> sac(Graph& graph, const SacOptions& options) {
  PassResult result;
  remark_names(graph, options, result);
  const IdMap<NodeId, Tag> tags = Tagger(graph, options).run();
  for (const NodeId node : graph.nodes()) {
    if (graph[node].tag != Tag::kNone || tags[node] == Tag::kNone) continue;
    graph[node].tag = tags[node];
    result.count(wants_recompute(tags[node]) ? "tagged-recompute" : "tagged-save");
  }
  return result;
}

}  // namespace fxopt
