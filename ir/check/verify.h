#pragma once

#include <vector>

#include "core/error.h"
#include "ir/graph/module.h"

namespace fxopt {

// Returns every broken invariant of a module in one pass, in the order of graphs and nodes. Empty
// if the module is well formed. The head of verify.cpp lists the invariants by group. O(nodes +
// edges + values).
//
// `max_diagnostics` bounds the list. Beyond it, the last entry gives the number of further
// diagnostics. `is_known`: by graph id, true for a graph that was well formed when last checked,
// provided that neither it nor anything in the module outside its graphs has changed since. These
// graphs are skipped. Empty: none.
std::vector<Error> verify(const Module& module, size_t max_diagnostics = 100,
                          const std::vector<bool>& is_known = std::vector<bool>());

}  // namespace fxopt
