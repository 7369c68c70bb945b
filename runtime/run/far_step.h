#pragma once

#include <cstdint>
#include <optional>

#include "core/result.h"
#include "runtime/plan/evaluate.h"
#include "runtime/run/program.h"

namespace fxopt {

// Returns the total bytes of the results of all calls in a plan. first_far_step() keeps a copy of
// all these results.
int64_t bytes_of_results(const FxPlan& plan, const ScalarValues& values);

// Returns the first step of the plan (one call) with a result that is far from its float64 result.
// A result is far if an element differs by more than a thousandth of the largest element of the
// float64 result. `wide` runs the training step of `narrow` in float64 (widen()). The function
// finds a kernel that is wrong in only one of the two types. If a kernel is wrong in both types,
// the function may return nullopt. Inputs must have the contents that they had before the first
// run. Each program runs once. Fails with the errors of the runs.
Result<std::optional<uint32_t>> first_far_step(Program& narrow, Program& wide, const ScalarValues& values);

}  // namespace fxopt
