#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/abi/plan.h"
#include "runtime/ops/coverage.h"
#include "runtime/plan/check.h"
#include "runtime/plan/evaluate.h"

namespace fxopt {

class Console;

struct PlanReportOptions {
  std::string input;  // as messages name it
  uint32_t streams = 1;
  bool prints_plan = false;
  ScalarValues::SymbolOf symbols;
};

// What `fxopt run --dry-run` says of a plan: kernels, transfers, memory of each device, results that rules know, operators
// without a kernel (an error). Lines for people, and fields of the envelope's result.
void report_plan(Console& console, const FxPlan& plan, const PlanReportOptions& options);

// Operators without a row: their table, what can be done, and the error. False where there are none.
bool report_missing(Console& console, const FxPlan& plan, const std::string& input);

// Faults that the checker of plans found are a mistake of ours: an error each. True where there are some.
bool report_faults(Console& console, const std::vector<PlanFault>& faults, const std::string& input);

}  // namespace fxopt
