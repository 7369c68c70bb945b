#pragma once

#include "core/result.h"
#include "passes/pass/context.h"
#include "passes/pass/pass.h"

namespace fxopt {

// What to do with a node nobody reads whose running is visible elsewhere.
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
          "Collectives and waits nobody reads: keep, or remove (every rank must run the same pipeline); sends and "
          "receives stay.");
    field("random", self.random,
          "Random ops nobody reads and whose draws are not recorded: keep, or remove, which shifts later draws.");
    field("assertions", self.assertions, "Assertions on values at run time: keep, or remove with what only they read.");
    field("compat", self.compat,
          "fxopt, or torch: collectives nobody reads go, waits stay and so keep theirs; every mutation stays.");
  }
};

// Erases nodes that nothing visible depends on: one backward sweep over values, control dependencies and storages.
//
// Counters: erased. Remarks: collective-kept, random-kept (nobody reads the node, the policy keeps it).
// O(nodes + edges + buffers).
Result<PassResult> dce(Graph& graph, const DceOptions& options, PassContext& context);

}  // namespace fxopt
