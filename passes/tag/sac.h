#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "passes/pass/context.h"
#include "passes/pass/options.h"
#include "passes/pass/pass.h"
#include "passes/tag/policy.h"

namespace fxopt {

enum class SacPolicy : uint8_t {
  kFull,
  kPerOp,
  kNone,
};
template <>
struct EnumNames<SacPolicy> {
  static constexpr EnumName<SacPolicy> kAll[] = {
      {SacPolicy::kFull, "full"}, {SacPolicy::kPerOp, "per-op"}, {SacPolicy::kNone, "none"}};
};

struct SacOptions {
  SacPolicy policy = SacPolicy::kPerOp;
  int64_t recompute_every = 2;
  std::vector<std::string> recompute_matmuls_of = {"moe.router.gate"};
  std::vector<NodePattern> recompute;
  std::vector<NodePattern> save;
  std::vector<std::string> save_ops;
  bool save_first_residual = false;
  std::vector<std::string> exclude = {"lm_head", "loss"};
  TagStrength strength = TagStrength::kMust;
  MarkedValues marked = MarkedValues::kKeep;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("policy", self.policy,
          "full: recompute everything that can be recomputed; per-op: save matmuls, attention and reductions across "
          "ranks; none: tag only calls selected by recompute and save.");
    field("recompute", self.recompute,
          "Calls to tag MUST_RECOMPUTE under any policy: comma-separated module::op patterns with '*', such as "
          "layers.*.feed_forward::aten.silu.default. A pattern without '::' is an op.");
    field("save", self.save,
          "Calls to tag MUST_SAVE under any policy, as patterns like those of recompute. save wins over recompute.");
    field("recompute-every", self.recompute_every,
          "per-op: recompute every N-th matmul of a layer; 0 saves all, torchtitan uses 2.");
    field("recompute-matmuls-of", self.recompute_matmuls_of,
          "per-op: parts of module paths, comma-separated, whose matmuls are recomputed and not counted.");
    field("save-ops", self.save_ops,
          "per-op: the ops to save, comma-separated, instead of matmuls, attention and reductions across ranks.");
    field("save-first-residual", self.save_first_residual,
          "Tag the first residual sum of each layer MUST_SAVE, so that recomputing later calls of the layer does not "
          "recompute earlier ones.");
    field("exclude", self.exclude, "Top-level modules, comma-separated, to leave untagged (saved).");
    field("strength", self.strength, kStrengthHelp);
    field("marked", self.marked, kMarkedHelp);
  }
  Status check() const;
};

// Tags forward nodes for selective activation checkpointing: MUST_SAVE or a recompute tag on every
// forward call outside `exclude` that has no tag yet. Stored tags stay. A call that cannot be
// repeated is MUST_SAVE, with a remark if `recompute` selects it. A value that another layer or
// region reads is MUST_SAVE, so recomputing one layer does not reach into the one before
// (layers.h). A layer's first residual sum is its first `add` of two tensors of equal sizes, one
// made inside the layer and one outside. If no layer has one, the pass warns (`no-residual`).
//
// Values that a first partition marked stay untagged, with a remark (policy.h). Tags record that
// sac wrote them, except those of `recompute` and `save`, which the caller requested.
//
// Counters: tagged-save, tagged-recompute. Warnings: no-layers, no-residual. Remarks: marks-kept.
// Phases are inferred if the graph marks none. Policies follow torchtitan's memory_policy.py (full,
// eager), with its save set `_get_default_save_ops`. O(nodes + edges).
Result<PassResult> sac(Graph& graph, const SacOptions& options, PassContext& context);

}  // namespace fxopt
