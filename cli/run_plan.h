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

// Reports a plan for `fxopt run --dry-run`: kernels, transfers, the memory of each device, and
// results whose recorded shape differs from the operator's shape rule. Also reports operators
// without a kernel. An operator without a kernel is an error. Prints text, and adds fields to
// Console::result(), which --json prints.
void report_plan(Console& console, const FxPlan& plan, const PlanReportOptions& options);

// If operators lack a kernel, prints a table of these operators, the remedies and an error, and
// returns true.
bool report_missing(Console& console, const FxPlan& plan, const std::string& input);

// Reports each of the plan checker's `faults` as an internal error. Returns true if there are
// faults.
bool report_faults(Console& console, const std::vector<PlanFault>& faults, const std::string& input);

}  // namespace fxopt
