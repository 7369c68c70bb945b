#pragma once

#include <cstdint>

#include "core/result.h"
#include "passes/pass/context.h"
#include "passes/pass/pass.h"

namespace fxopt {

enum class PartitionMode : uint8_t {
  kDefault,
};
template <>
struct EnumNames<PartitionMode> {
  static constexpr EnumName<PartitionMode> kAll[] = {{PartitionMode::kDefault, "default"}};
};

struct PartitionOptions {
  PartitionMode mode = PartitionMode::kDefault;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("mode", self.mode,
          "What is saved. default: all that backward reads, but what the tags say to compute again (PyTorch's "
          "default_partition).");
  }
};

// Makes a forward and a backward graph of a joint graph, with the calling convention of AOTAutograd:
//
//   forward   (primals) -> (forward outputs, saved tensors, saved objects, saved symbols)
//   backward  (saved symbols, saved tensors, saved objects, tangents) -> (gradients)
//
// What the tags say to compute again is copied into backward as remat does it (passes/recompute/remat.h), with its
// counters, verdicts and errors; forward keeps the original only where something of forward reads it. A graph that is
// partitioned already stays, with the remark `partitioned`.
//
// Counters: those of remat; saved (tensors and objects), saved-symbols, graphs; tangents (inferred, where the file gives no
// roles). Errors: those of remat and of plan_split(); kUnsupportedGraph where no graph, or more than one, is joint, or
// others stand beside it. O(nodes + edges + copies log copies).
Result<PassResult> partition(Module& module, const PartitionOptions& options, PassContext& context);

}  // namespace fxopt
