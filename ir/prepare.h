#pragma once

#include <cstddef>
#include <vector>

#include "core/error.h"
#include "ir/graph/module.h"
#include "ir/io/control_deps.h"

namespace fxopt {

// The result of prepare().
struct Prepared {
  // Broken invariants, as verify() lists them. If any, nothing else was done.
  std::vector<Error> broken;
  ControlDepsResult lowered;
  size_t completed = 0;       // values derived by complete_values()
  double verify_seconds = 0;  // verification alone, without the rest of the call; for reports
};

// Prepares a module after reading. Everything that measures or rewrites a module, or repeats a
// rewrite, calls this first, so that one file always has one peak. It verifies the module, then
// lowers control_deps calls (lower_control_deps()) and derives values that the tracer left out
// (complete_values()). A second call changes nothing. O(nodes + edges + values).
Prepared prepare(Module& module);

}  // namespace fxopt
