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

// The report of `fxopt run --dry-run` on a plan: kernels, transfers, memory of each device, results
// that rules predict, and operators without a kernel (an error). Prints text, and adds fields to
// the envelope's result.
void report_plan(Console& console, const FxPlan& plan, const PlanReportOptions& options);

// Prints a table of operators without a kernel, remedies, and the error. False if every operator
// has one.
bool report_missing(Console& console, const FxPlan& plan, const std::string& input);

// Reports each fault that the plan checker found as an internal error. True if there are faults.
bool report_faults(Console& console, const std::vector<PlanFault>& faults, const std::string& input);

}  // namespace fxopt
