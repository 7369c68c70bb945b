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
          "full: recompute all that can be; per-op: save matmuls, attention and reductions of ranks; none: tag only "
          "what recompute and save select.");
    field("recompute", self.recompute,
          "Calls to tag MUST_RECOMPUTE whatever the policy, comma-separated module::op patterns with '*', as in "
          "layers.*.feed_forward::aten.silu.default; a pattern without '::' is an op.");
    field("save", self.save, "Calls to tag MUST_SAVE whatever the policy, likewise; wins over recompute.");
    field("recompute-every", self.recompute_every,
          "per-op: recompute every N-th matmul of a layer; 0 saves all, torchtitan uses 2.");
    field("recompute-matmuls-of", self.recompute_matmuls_of,
          "per-op: module path parts, comma-separated, whose matmuls are recomputed and not counted.");
    field("save-ops", self.save_ops,
          "per-op: the ops to save, comma-separated, in place of matmuls, attention and reductions of ranks.");
    field("save-first-residual", self.save_first_residual,
          "Tag the first residual sum of each layer MUST_SAVE, so that recomputing what follows it does not reach what "
          "precedes it.");
    field("exclude", self.exclude, "Top-level modules, comma-separated, left untagged (saved).");
    field("strength", self.strength, kStrengthHelp);
    field("marked", self.marked, kMarkedHelp);
  }
  Status check() const;
};

// Tags forward nodes for selective activation checkpointing: MUST_SAVE or a recompute tag on every forward call outside
// `exclude` that has no tag yet. Stored tags stay. What cannot be repeated is MUST_SAVE. A value that another layer or
// region reads is MUST_SAVE, so that recomputing one layer does not reach into the one before (layers.h). What `recompute` selects
// and cannot be repeated is a remark. A layer's first residual sum is its first `add` of two tensors of equal sizes of which
// one was made outside of the layer and the other within; where none has one, the warning `no-residual`.
//
// Values that a first partition marked stay untagged, with a remark (policy.h). Tags record that sac wrote them, those of `recompute` and
// `save` excepted, which the caller asked for.
//
// Counters: tagged-save, tagged-recompute. Warnings: marks-kept. Phases are derived where the graph marks none.
// Policies after torchtitan's memory_policy.py (full, eager), save set `_get_default_save_ops`. O(nodes + edges).
Result<PassResult> sac(Graph& graph, const SacOptions& options, PassContext& context);

}  // namespace fxopt
