#pragma once

#include <cstdint>
#include <vector>

#include "core/result.h"
#include "passes/pass/context.h"
#include "passes/pass/pass.h"

namespace fxopt {

enum class CanonicalizeRule : uint8_t { kAliases, kIdentityViews, kIdentitySlices, kRoundTrips, kReshapes };
template <>
struct EnumNames<CanonicalizeRule> {
  static constexpr EnumName<CanonicalizeRule> kAll[] = {{CanonicalizeRule::kAliases, "aliases"},
                                                        {CanonicalizeRule::kIdentityViews, "identity-views"},
                                                        {CanonicalizeRule::kIdentitySlices, "identity-slices"},
                                                        {CanonicalizeRule::kRoundTrips, "round-trips"},
                                                        {CanonicalizeRule::kReshapes, "reshapes"}};
};

struct CanonicalizeOptions {
  std::vector<CanonicalizeRule> rules = {CanonicalizeRule::kAliases, CanonicalizeRule::kIdentityViews,
                                         CanonicalizeRule::kIdentitySlices, CanonicalizeRule::kRoundTrips};
  Compat compat = Compat::kFxopt;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("rules", self.rules,
          "What goes: aliases (alias, detach), identity-slices (of everything), identity-views (other views equal "
          "to their input), round-trips (views that undo those before them), reshapes (view and _unsafe_view become "
          "reshape, which is known to be a view only where values are recorded).");
    field("compat", self.compat,
          "fxopt, or torch: aliases go also where the caller would then be handed an input or one output twice.");
  }
};

// Removes views that are what they view: aliases and detaches, views, slices, permutes, expands that change nothing,
// and views that undo the views before them.
//
// Counters: identities (a view equal to its input), round-trips (equal to what stands further up), dead-views (views
// that were only on the way), reshapes. Remarks: returned-alias, ordered, changed-in-place, by-keyword (a view whose
// size is given by keyword stays one), unsure-strides (an operator before it chooses its layout), saved-view (a second
// partition would save another value), and others that say what makes the view and its base two tensors.
// O(nodes + edges).
Result<PassResult> canonicalize(Graph& graph, const CanonicalizeOptions& options, PassContext& context);

}  // namespace fxopt
