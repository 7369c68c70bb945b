#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/run_report.h"
#include "core/result.h"
#include "ir/io/safetensors.h"
#include "runtime/plan/plan.h"
#include "runtime/run/compare.h"
#include "runtime/run/outputs.h"
#include "runtime/run/program.h"
#include "runtime/run/widen.h"

namespace fxopt {

class Console;

// Implements --expect: compares the values of a run with those of a file. If they differ, finds the
// steps that could explain it, and the first node far from its float64 result.
class RunComparison {
 public:
  // All arguments outlive the object. `options` returns the options of another run of the step,
  // with memory for the caller's storages. `program` has run.
  RunComparison(Console& console, const RunFacts& facts, RunTarget& target, Program& program,
                std::function<ExecuteOptions(const std::vector<void*>&)> options);

  // Compares `values`, which are outputs and results of steps, and prints the findings. Errors:
  // kOutputsDiffer; kBadInput if the file has none of the values; those of the float64 runs. Runs
  // the step up to three more times.
  Status compare(const std::vector<const NamedTensor*>& values, const SafetensorsFile& expected);

 private:
  using Reference = std::map<std::string, NamedTensor>;

  Result<std::unique_ptr<Program>> prepare_in_float64();
  Result<Reference> run_in_float64(const std::vector<const NamedTensor*>& values);
  bool compare_value(const NamedTensor& value, const SafetensorsTensor& expected, const Reference& reference);
  void print_uncompared(const std::vector<const NamedTensor*>& values, const std::vector<const NamedTensor*>& known,
                        const SafetensorsFile& expected);
  void print_made_up();
  void print_suspects(const std::vector<Compared>& compared);
  Status print_far_step();

  Console& console_;
  const RunFacts& facts_;
  const FxPlan& plan_;
  RunTarget& target_;
  Program& program_;
  std::function<ExecuteOptions(const std::vector<void*>&)> options_;
  Tolerance tolerance_;
  std::string lines_;  // text for values that differ
  size_t shown_ = 0;   // count of differing values, including those beyond the printed lines
  size_t misshapen_ = 0;
  std::unique_ptr<Plan> wide_plan_;
  std::optional<WidenedInputs> wide_inputs_;
};

}  // namespace fxopt
