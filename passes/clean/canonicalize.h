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
          "(other views equal to their input), round-trips (views that undo earlier views). The rule `reshapes` "
          "turns view and _unsafe_view into reshape. A reshape may copy: it is known to be a view only if the file "
          "records sizes and strides.");
    field(
        "compat", self.compat,
        "fxopt: keep a view if the graph would otherwise return an input, or return one tensor twice. Also keep a view "
        "that stops gradients, as detach does, if autograd may differentiate the graph. torch: keep none of these "
        "views.");
  }
};

// Removes views that change nothing: alias and detach calls, and every view, slice, permute or
// expand that equals its input. Also removes views that undo earlier views.
//
// Counters:
// - identities: removed views that equal their input
// - round-trips: removed views that equal a tensor further up the chain of views
// - dead-views: views that lost their last user
// - reshapes: views that became a reshape
//
// Remarks, each on a view that stays:
// - by-keyword: the view does not become a reshape, because its size is a keyword argument
// - unsure-strides: the view equals its input only by recorded strides, but an earlier operator may
//   choose other strides
// - saved-view: only the view or only its base is to be saved for backward
// - returned-alias, given-both, stops-gradients, ordered, changed-in-place: the view and its base
//   must remain two tensors
//
// Complexity: O(nodes + edges).
Result<PassResult> canonicalize(Graph& graph, const CanonicalizeOptions& options, PassContext& context);

}  // namespace fxopt
