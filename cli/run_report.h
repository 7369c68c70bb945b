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
  // The same program if it runs on a device; otherwise null.
  const DeviceProgram* on_device = nullptr;
  // The seconds of the timed runs, measured with the device's events or with the CPU's clock.
  std::vector<double> seconds;
  std::vector<double> launch_seconds;  // the CPU's time to launch each run; empty on the CPU
  int64_t resident_bytes = 0;          // the process's largest resident size after the first run
};

// Prints the outcome, devices, inputs, draws, time and memory as text, and adds the same facts as
// JSON to the result. Fails if the device cannot be read. O(elements of outputs).
Status report_run(Console& console, const RunFacts& facts);

// Prints the time and memory of a run that was interrupted.
void report_interrupted_run(Console& console, const RunFacts& facts, uint32_t whole_runs, double seconds);

// Returns the median: the middle of the sorted numbers, or the larger of the two middle numbers.
// `numbers` must not be empty.
double median_of(std::vector<double> numbers);

// Returns the process's largest resident size so far, in bytes. The system counts this size for the
// current address space. getrusage() is not used because it would include the size before exec.
// Returns 0 if the system does not report the size.
int64_t largest_resident_bytes();

// Formats a number with "%.9g", which prints enough digits for any float32.
std::string number_text(double number);

}  // namespace fxopt
