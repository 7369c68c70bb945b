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

// Returns the first step whose result in `narrow` is far from the result of the same step in
// `wide`. A step is one call of an operator in the plan. `wide` runs the training step of `narrow`
// in float64 (widen()). Let a be an element of the result in `narrow`, and let b be the same
// element of the float64 result in `wide`. The result is far if one of these conditions is true for
// at least one element:
// - b is finite, and |a - b| > 0.001 * m. Here, m is the largest |b| among the finite elements of
//   the float64 result.
// - Exactly one of a and b is NaN.
//
// The function finds a kernel that is wrong in only one of the two programs. If a kernel is wrong
// in both programs, the function may return nullopt. Inputs must have the contents that they had
// before the first run. Each program runs once. Fails with the errors of the runs.
Result<std::optional<uint32_t>> first_far_step(Program& narrow, Program& wide, const ScalarValues& values);

}  // namespace fxopt
