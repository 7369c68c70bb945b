#pragma once

#include <vector>

#include "core/error.h"
#include "ir/graph/module.h"

namespace fxopt {

// Returns every broken invariant of a module, in the order of graphs and nodes. One pass over the
// module finds all broken invariants. The list is empty if the module is well formed. The head of
// verify.cpp lists the invariants by group. O(nodes + edges + values).
//
// `max_diagnostics` limits the list. If there are more diagnostics, the last entry states how many
// diagnostics are left out.
//
// `is_known` has one entry for each graph id. An entry is true if verify() may skip the graph. Two
// conditions must hold: the graph was well formed when it was last checked, and since then neither
// the graph nor the parts of the module outside of graphs have changed. If `is_known` is empty, all
// graphs are checked.
std::vector<Error> verify(const Module& module, size_t max_diagnostics = 100,
                          const std::vector<bool>& is_known = std::vector<bool>());

}  // namespace fxopt
