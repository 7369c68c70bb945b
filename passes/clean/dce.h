#pragma once

#include "core/result.h"
#include "passes/pass/context.h"
#include "passes/pass/pass.h"

namespace fxopt {

// How to treat a node without users whose execution has effects elsewhere.
enum class DeadPolicy : uint8_t {
  kKeep,
  kRemove,
};
template <>
struct EnumNames<DeadPolicy> {
  static constexpr EnumName<DeadPolicy> kAll[] = {{DeadPolicy::kKeep, "keep"}, {DeadPolicy::kRemove, "remove"}};
};

struct DceOptions {
  DeadPolicy collectives = DeadPolicy::kKeep;
  DeadPolicy random = DeadPolicy::kKeep;
  DeadPolicy assertions = DeadPolicy::kKeep;
  Compat compat = Compat::kFxopt;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("collectives", self.collectives,
          "Unused collectives and waits: keep, or remove (every rank must run the same pipeline). Sends and receives "
          "always stay.");
    field("random", self.random,
          "Unused random ops without recorded draws: keep, or remove, which shifts later draws.");
    field("assertions", self.assertions,
          "Assertions on values at run time: keep, or remove together with the nodes that only they use.");
    field("compat", self.compat,
          "fxopt, or torch: removes unused collectives, but keeps every wait with its collective, and every mutation.");
  }
};

// Erases nodes that no visible result or effect depends on, in one backward sweep over values,
// control dependencies and storages.
//
// Counters: erased. Remarks: collective-kept, random-kept (the policy keeps a node without users).
// O(nodes + edges + buffers).
Result<PassResult> dce(Graph& graph, const DceOptions& options, PassContext& context);

}  // namespace fxopt
