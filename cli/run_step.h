#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/run_target.h"
#include "core/result.h"
#include "ir/graph/expr.h"
#include "runtime/abi/plan.h"
#include "runtime/plan/evaluate.h"

namespace fxopt {

class Console;
class Module;

// The flags of `fxopt run` that configure a run.
struct RunStepFlags {
  std::vector<std::string> inputs;  // --inputs: safetensors
  std::vector<std::string> input;   // --input NAME=...
  std::string state;                // --state
  std::string fill;
  uint64_t seed = 0;
  std::string draws, save_draws;  // --draws, --save-draws
  std::string output;             // --output
  std::vector<std::string> save;  // --save NODE
  std::string expect;             // --expect
  std::string tolerance = "auto";
  uint32_t repeat = 1;
  std::optional<uint64_t> warmup;
  bool per_node = false;
  std::optional<uint64_t> top;    // --top: largest number of rows in each table of --per-node; 10 if absent
  std::string profile;            // --profile: device profile that predicts node times
  std::string write_measurement;  // --write-measurement
  RunTargetFlags target;
};

// Fails with kBadOptionValue if a flag has an invalid value.
Status check_step_flags(const RunStepFlags& flags);

// Runs the step and prints time, memory, outputs, and the comparison of --expect. Reports errors to
// the console. The inputs determine the values of the symbols. `check_guards` then checks that the
// graph was traced for these values.
void run_step(Console& console, const Module& module, const FxPlan& plan, const RunStepFlags& flags,
              const std::string& input, const ScalarValues::SymbolOf& symbols,
              const std::function<Status(const SymbolValues&)>& check_guards);

}  // namespace fxopt
