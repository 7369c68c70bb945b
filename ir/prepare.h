#pragma once

#include <cstddef>
#include <vector>

#include "core/error.h"
#include "ir/graph/module.h"
#include "ir/io/control_deps.h"

namespace fxopt {

// What became of a module that was read.
struct Prepared {
  std::vector<Error> broken;  // invariants, as verify() lists them; then nothing else was done
  ControlDepsResult lowered;
  size_t completed = 0;       // values, see complete_values()
  double verify_seconds = 0;  // for people, of which the whole call takes more
};

// The one way in for a module that was read: what measures it, what rewrites it and what repeats a rewrite do the same
// here, so that one file has one peak. Verifies; then nodes that ops hide come out (lower_control_deps()), and values
// that the tracer left out are derived (complete_values()). Doing it twice changes nothing. O(nodes + edges + values).
Prepared prepare(Module& module);

}  // namespace fxopt
