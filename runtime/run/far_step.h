#pragma once

#include <cstdint>
#include <optional>

#include "core/result.h"
#include "runtime/plan/evaluate.h"
#include "runtime/run/program.h"

namespace fxopt {

// Bytes of all results of a step's nodes, which first_far_step() keeps.
int64_t bytes_of_results(const FxPlan& plan, const ScalarValues& values);

// The first node that is far from itself in float64: one of its results has an element that differs by more than a thousandth of the
// largest element there. `wide` is the same step in float64 (widen()). A kernel that is wrong in one type is found so, one that is
// wrong in both is not: then nothing. Inputs must be as they were before the first run. Runs each once. Errors: of the runs.
Result<std::optional<uint32_t>> first_far_step(Program& narrow, Program& wide, const ScalarValues& values);

}  // namespace fxopt
