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

// The times of a plan's steps, each measured on its own.
struct StepTimes {
  StepTimes(const Module& of_module, const FxPlan& of_plan) : module(of_module), plan(of_plan) {}

  const Module& module;
  const FxPlan& plan;
  std::vector<FxStepTime> steps;  // median times, by step
  double step_seconds = 0;        // time of the whole plan in a normal run
  uint32_t runs = 1;              // number of runs from which the medians are taken
  size_t shown = 10;              // rows of each table
  std::string device;             // "NVIDIA H100 80GB HBM3", "cpu"
  bool is_launched = false;       // the CPU launches steps on a device
  std::string method;             // "cuda events", "steady clock"
  SymbolValues symbols;
  const DeviceProfile* profile = nullptr;  // for predicted times; null: no predictions
};

// Prints a table by module, a table by operator and a table of the slowest nodes, with measured and
// predicted times. Also reports whether the sum of the nodes' times matches the time of the whole
// plan. Adds the times of every node and their sum as JSON to Console::result(). O(steps log
// steps).
void report_step_times(Console& console, const StepTimes& times);

// Writes the times as a measurement, which `mem` and `diff` read with --measurement. If a node ran
// several times, its time is the mean. Fails with the errors of writing the file.
Status write_step_times(const std::string& path, const StepTimes& times);

}  // namespace fxopt
