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
          "Views to remove: aliases (alias, detach), identity-slices (a slice that takes everything), identity-views "
          "(other views equal to their input), round-trips (views that undo earlier views). reshapes turns view and "
          "_unsafe_view into reshape, which is known to be a view only if values are recorded.");
    field("compat", self.compat,
          "fxopt, or torch: removes a view even if the caller then gets an input, or the same output twice, or if "
          "gradients then flow through it.");
  }
};

// Removes views that change nothing: aliases, detaches, and views, slices, permutes and expands
// that are equal to their input. Removes views that undo earlier views.
//
// Counters: identities (a view equal to its input), round-trips (equal to a tensor further up the
// chain of views), dead-views (views that lost their last user), reshapes. Remarks: returned-alias,
// ordered, changed-in-place, by-keyword (a view whose size is a keyword argument does not become a
// reshape), unsure-strides (an earlier operator chooses its own layout), saved-view (a second
// partition would save another value). Other remarks say why the view and its base must stay two
// tensors. O(nodes + edges).
Result<PassResult> canonicalize(Graph& graph, const CanonicalizeOptions& options, PassContext& context);

}  // namespace fxopt
