#pragma once

#include <cstdint>
#include <optional>

#include "core/result.h"
#include "runtime/plan/evaluate.h"
#include "runtime/run/program.h"

namespace fxopt {

// Returns the bytes of all results of a step's nodes, which first_far_step() keeps.
int64_t bytes_of_results(const FxPlan& plan, const ScalarValues& values);

// Returns the first node that is far from its float64 result: an element of a result differs by
// more than a thousandth of the largest element there. `wide` is the same step in float64
// (widen()). This finds a kernel that is wrong in one type, but not one that is wrong in both; then
// it returns nullopt. Inputs must be as before the first run. Runs each program once. Errors: those
// of the runs.
Result<std::optional<uint32_t>> first_far_step(Program& narrow, Program& wide, const ScalarValues& values);

}  // namespace fxopt
