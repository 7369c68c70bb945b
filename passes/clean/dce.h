#pragma once

#include "core/result.h"
#include "passes/pass/context.h"
#include "passes/pass/pass.h"

namespace fxopt {

// How to treat a node whose result is unused, but which has another effect.
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
          "Unused random ops whose generator offset is not recorded: keep, or remove. After a removal, later random "
          "ops draw other numbers.");
    field(
        "assertions", self.assertions,
        "Assertions that check values at run time: keep, or remove together with the nodes that only assertions use.");
    field("compat", self.compat,
          "fxopt: the rules of this pass; torch: keep all mutations and waits, and so each collective that a wait "
          "depends on.");
  }
};

// Erases each node on which no visible result or effect depends. One sweep, from the last node to
// the first, follows values, control dependencies and storages.
//
// Counters: erased. Two kinds of nodes get a remark if the pass keeps them although their results,
// and the memory that they write, are unused:
// - collective-kept: a collective, or the wait for a collective
// - random-kept: a random op whose generator offset is not recorded
//
// Complexity: O(nodes + edges + buffers).
Result<PassResult> dce(Graph& graph, const DceOptions& options, PassContext& context);

}  // namespace fxopt
