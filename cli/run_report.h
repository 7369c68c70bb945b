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

// A run of a step, for what is printed of it.
struct RunFacts {
  RunFacts(const Module& of_module, const FxPlan& of_plan, const RunStepFlags& of_flags, const RunInputs& of_inputs)
      : module(of_module), plan(of_plan), flags(of_flags), inputs(of_inputs) {}

  const Module& module;
  const FxPlan& plan;
  const RunStepFlags& flags;
  const RunInputs& inputs;
  const RunTarget* target = nullptr;
  const Program* program = nullptr;
  const DeviceProgram* on_device = nullptr;  // the same, on a device
  std::vector<double> seconds;               // of the timed runs: by the device's events, on the CPU by its clock
  std::vector<double> launch_seconds;        // what the CPU took to launch them; empty on the CPU
  int64_t resident_bytes = 0;                // the process's largest resident size after the first run
};

// Outcome, devices, inputs, draws, time, memory: as text, and as JSON in the result. Errors: of a device that cannot be read.
// O(elements of outputs).
Status report_run(Console& console, const RunFacts& facts);

// Time and memory of a run that was interrupted.
void report_interrupted_run(Console& console, const RunFacts& facts, uint32_t whole_runs, double seconds);

// The middle of sorted numbers, the upper one of two. `numbers` is not empty.
double median_of(std::vector<double> numbers);

// The process's largest resident size so far in bytes, as the system counts it for its address space (getrusage() has the largest of
// what the process was before exec, too). 0 where it does not say.
int64_t largest_resident_bytes();

// "%.9g": a float32 in full.
std::string number_text(double number);

}  // namespace fxopt
