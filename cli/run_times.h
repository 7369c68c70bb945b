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
  double step_seconds = 0;        // time of the whole step in a normal run
  uint32_t runs = 1;              // number of runs of the medians
  size_t shown = 10;              // rows of each table
  std::string device;             // "NVIDIA H100 80GB HBM3", "cpu"
  bool is_launched = false;       // the CPU launches steps on a device
  std::string method;             // "cuda events", "steady clock"
  SymbolValues symbols;
  const DeviceProfile* profile = nullptr;  // for predictions; null: none
};

// Prints tables by module, by operator and of the slowest nodes, with measured and predicted times,
// and whether the sum matches the step's time. Adds the same as JSON to the result, for every node.
// O(steps log steps).
void report_step_times(Console& console, const StepTimes& times);

// Writes the times as a measurement for --measurement of mem and diff. A node that ran several
// times has its mean. Errors: those of writing the file.
Status write_step_times(const std::string& path, const StepTimes& times);

}  // namespace fxopt
