#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/result.h"
#include "ir/device/profile.h"
#include "ir/graph/module.h"
#include "runtime/abi/device.h"
#include "runtime/abi/plan.h"

namespace fxopt {

class Console;

// Times of a plan's steps, each run alone.
struct StepTimes {
  StepTimes(const Module& of_module, const FxPlan& of_plan) : module(of_module), plan(of_plan) {}

  const Module& module;
  const FxPlan& plan;
  std::vector<FxStepTime> steps;  // medians, by step
  double step_seconds = 0;        // of the whole step, as it runs without that
  uint32_t runs = 1;              // that the medians are of
  size_t shown = 10;              // lines of each table
  std::string device;             // "NVIDIA H100 80GB HBM3", "cpu"
  bool is_launched = false;       // the CPU launches steps on a device
  std::string method;             // "cuda events", "steady clock"
  SymbolValues symbols;
  const DeviceProfile* profile = nullptr;  // predicts; null: nothing is predicted
};

// Tables by module, by operator and of the nodes that took longest, measured beside predicted; and where the sum is not the step's
// time. The same as JSON in the result: every node. O(steps log steps).
void report_step_times(Console& console, const StepTimes& times);

// The times as a measurement, which --measurement of mem and diff reads. A node that ran several times has the mean. Errors: of the file.
Status write_step_times(const std::string& path, const StepTimes& times);

}  // namespace fxopt
