#pragma once

#include <cstdint>
#include <string>

#include "core/result.h"
#include "passes/pipeline/pass.h"

namespace fxopt {

enum class SacPolicy : uint8_t {
  kFull,
  kPerOp,
};
template <>
struct EnumNames<SacPolicy> {
  static constexpr EnumName<SacPolicy> kAll[] = {{SacPolicy::kFull, "full"}, {SacPolicy::kPerOp, "per-op"}};
};

struct SacOptions {
  SacPolicy policy = SacPolicy::kPerOp;
  int64_t recompute_every = 2;
  std::string recompute_matmuls_of = "moe.router.gate";
  std::string save_ops;
  std::string exclude = "lm_head,loss";

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("policy", self.policy,
          "full: recompute all that can be; per-op: save matmuls, attention and reductions of ranks.");
    field("recompute-every", self.recompute_every,
          "per-op: of a layer's matmuls, recompute each so-many-th; 0 saves all, 2 is torchtitan's.");
    field("recompute-matmuls-of", self.recompute_matmuls_of,
          "per-op: module path parts, comma-separated, whose matmuls are recomputed and not counted.");
    field("save-ops", self.save_ops,
          "per-op: the ops to save, comma-separated, in place of matmuls, attention and reductions of ranks.");
    field("exclude", self.exclude, "Top-level modules, comma-separated, left untagged (saved).");
  }
  Status check() const;
};

// Tags forward nodes for selective activation checkpointing: MUST_SAVE or a recompute tag on every forward call outside
// `exclude` that has no tag yet. Stored tags stay. What cannot be repeated is MUST_SAVE. A value that a later layer or
// region reads is MUST_SAVE, so that recomputing one layer does not reach into the one before.
//
// Counters: tagged-save, tagged-recompute. Phases are derived where the graph marks none.
// Policies after torchtitan's memory_policy.py (full, eager), save set `_get_default_save_ops`. O(nodes + edges).
Result<PassResult> sac(Graph& graph, const SacOptions& options);

}  // namespace fxopt
