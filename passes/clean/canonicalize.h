#pragma once

#include "core/result.h"
#include "passes/pipeline/pass.h"

namespace fxopt {

struct CanonicalizeOptions {
  Compat compat = Compat::kFxopt;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("compat", self.compat,
          "fxopt, or torch: aliases go also where the caller would then be handed an input or one output twice.");
  }
};

// Removes views that are what they view: aliases and detaches, views, slices, permutes, expands that change nothing,
// and views that undo the views before them.
//
// Counters: identities (a view equal to its input), round-trips (equal to what stands further up), dead-views (views
// that were only on the way). Remarks: returned-alias, ordered, changed-in-place. O(nodes + edges).
Result<PassResult> canonicalize(Graph& graph, const CanonicalizeOptions& options);

}  // namespace fxopt
