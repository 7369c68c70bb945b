#pragma once

#include <vector>

#include "core/error.h"
#include "ir/graph/module.h"

namespace fxopt {

// Every broken invariant of a module, all at once, in the order graphs and nodes stand. The invariants, by group, are
// listed at the head of verify.cpp. Empty when the module is well formed. O(nodes + edges + values).
//
// `max_diagnostics` bounds the list; the last entry then says how many more there are.
std::vector<Error> verify(const Module& module, size_t max_diagnostics = 100);

}  // namespace fxopt
