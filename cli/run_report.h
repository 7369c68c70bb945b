#pragma once

#include <cstdint>
#include <vector>

#include "cli/run_inputs.h"
#include "cli/run_step.h"
#include "cli/run_target.h"
#include "core/result.h"
#include "ir/graph/module.h"
#include "runtime/abi/plan.h"
#include "runtime/run/program.h"

namespace fxopt {

class Console;

// The facts of a run that the report prints.
struct RunFacts {
  RunFacts(const Module& of_module, const FxPlan& of_plan, const RunStepFlags& of_flags, const RunInputs& of_inputs)
      : module(of_module), plan(of_plan), flags(of_flags), inputs(of_inputs) {}

  const Module& module;
  const FxPlan& plan;
  const RunStepFlags& flags;
  const RunInputs& inputs;
  const RunTarget* target = nullptr;
  const Program* program = nullptr;
  const DeviceProgram* on_device = nullptr;  // the same program, on a device
  // of the timed runs: by the device's events, or the CPU's clock
  std::vector<double> seconds;
  std::vector<double> launch_seconds;  // time of the CPU to launch them; empty on the CPU
  int64_t resident_bytes = 0;          // the process's largest resident size after the first run
};

// Prints outcome, devices, inputs, draws, time and memory, as text and as JSON in the result.
// Errors: those of a device that cannot be read. O(elements of outputs).
Status report_run(Console& console, const RunFacts& facts);

// Time and memory of a run that was interrupted.
void report_interrupted_run(Console& console, const RunFacts& facts, uint32_t whole_runs, double seconds);

// The median: the middle of the sorted numbers, the upper of two middle ones. `numbers` is not
// empty.
double median_of(std::vector<double> numbers);

// The process's largest resident size so far in bytes, as the system counts it for the current
// address space. getrusage() would include the size before exec. 0 if the system does not report
// it.
int64_t largest_resident_bytes();

// "%.9g": a float32 in full.
std::string number_text(double number);

}  // namespace fxopt
