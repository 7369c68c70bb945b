#pragma once

#include "core/result.h"
#include "passes/pass/context.h"
#include "passes/pass/pass.h"

namespace fxopt {

struct RaiseGetitemsOptions {
  template <class Self, class Field>
  static void visit(Self&, Field&&) {}
};

// Moves every getitem to the place directly after its producer. Getitems of one producer keep their
// order.
//
// Counters: raised. Remarks: held (a control dependency, an event or a computed index pins the
// getitem), changed-in-place. Complexity: O(nodes).
Result<PassResult> raise_getitems(Graph& graph, const RaiseGetitemsOptions& options, PassContext& context);

}  // namespace fxopt
