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
  std::string input;  // the name of the input in messages
  uint32_t streams = 1;
  bool prints_plan = false;
  ScalarValues::SymbolOf symbols;
};

// Reports a plan for `fxopt run --dry-run`: kernels, transfers, memory of each device, results that
// rules predict, and operators without a kernel. An operator without a kernel is an error. Prints
// text, and adds fields to the envelope's result.
void report_plan(Console& console, const FxPlan& plan, const PlanReportOptions& options);

// Prints a table of operators without a kernel, the remedies, and the error. Returns false if every
// operator has a kernel.
bool report_missing(Console& console, const FxPlan& plan, const std::string& input);

// Reports each fault that the plan checker found as an internal error. Returns true if there are
// faults.
bool report_faults(Console& console, const std::vector<PlanFault>& faults, const std::string& input);

}  // namespace fxopt
