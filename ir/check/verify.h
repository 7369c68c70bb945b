#pragma once

#include <vector>

#include "core/error.h"
#include "ir/graph/module.h"

namespace fxopt {

// Every broken invariant of a module, all at once, in the order graphs and nodes stand. The invariants, by group, are
// listed at the head of verify.cpp. Empty when the module is well formed. O(nodes + edges + values).
//
// `max_diagnostics` bounds the list; the last entry then says how many more there are.
// `is_known`: by graph id, those that were well formed and have not changed since, nor what the module holds besides
// graphs; they are not looked into. Empty: none.
std::vector<Error> verify(const Module& module, size_t max_diagnostics = 100,
                          const std::vector<bool>& is_known = std::vector<bool>());

}  // namespace fxopt
