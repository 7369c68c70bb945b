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

// The facts that report_run() prints about the executions of a step.
struct RunFacts {
  RunFacts(const Module& of_module, const FxPlan& of_plan, const RunStepFlags& of_flags, const RunInputs& of_inputs)
      : module(of_module), plan(of_plan), flags(of_flags), inputs(of_inputs) {}

  const Module& module;
  const FxPlan& plan;
  const RunStepFlags& flags;
  const RunInputs& inputs;
  const RunTarget* target = nullptr;
  const Program* program = nullptr;
  // `program` as a DeviceProgram. Null if the program runs on the CPU.
  const DeviceProgram* on_device = nullptr;
  // The seconds of each timed execution, measured with the device's events or with the CPU's clock.
  std::vector<double> seconds;
  // The CPU's time to launch each timed execution. Empty if the program runs on the CPU.
  std::vector<double> launch_seconds;
  // The largest resident size of the process in bytes, from the start of the process to the end of
  // the first execution. If an execution is interrupted, the period ends at the interrupt.
  int64_t resident_bytes = 0;
};

// Prints the outcome, devices, inputs, random draws, time and memory as text. Adds the same facts
// as JSON to Console::result(). Fails if the outputs cannot be copied from the device's memory.
// O(elements of outputs).
Status report_run(Console& console, const RunFacts& facts);

// Prints the time and memory of an execution that was interrupted. `whole_runs` is the number of
// complete executions before the interrupt.
void report_interrupted_run(Console& console, const RunFacts& facts, uint32_t whole_runs, double seconds);

// Returns the median: the middle of the sorted numbers, or the larger of the two middle numbers.
// `numbers` must not be empty.
double median_of(std::vector<double> numbers);

// Returns the process's largest resident size since exec, in bytes. getrusage() is not used,
// because its figure includes the time before exec. Returns 0 if the system does not report the
// size.
int64_t largest_resident_bytes();

// Formats a number with "%.9g", which prints enough digits for any float32.
std::string number_text(double number);

}  // namespace fxopt
