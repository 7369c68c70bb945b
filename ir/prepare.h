#pragma once

#include <cstddef>
#include <vector>

#include "core/error.h"
#include "ir/graph/module.h"
#include "ir/io/control_deps.h"

namespace fxopt {

// The result of prepare().
struct Prepared {
  // The broken invariants, as verify() lists them. If the list is not empty, prepare() did nothing
  // else.
  std::vector<Error> broken;
  ControlDepsResult lowered;
  size_t completed = 0;       // number of values that complete_values() derived
  double verify_seconds = 0;  // time of only the verification, for reports
};

// Prepares a module that was just read. All code that measures a module, rewrites a module or
// repeats a rewrite calls this function first. Therefore, every command computes the same peak
// memory for a file.
//
// The function verifies the module. It then lowers control_deps calls (lower_control_deps()), and
// derives values that the tracer left out (complete_values()). A second call changes nothing.
// O(nodes + edges + values).
Prepared prepare(Module& module);

}  // namespace fxopt
