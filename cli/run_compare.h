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

// Implements --expect: compares the values of a run with the values in a file. If values differ,
// finds the nodes that could explain the differences. Then runs the step in float64 too, and finds
// the first node whose result is far from its float64 result.
class RunComparison {
 public:
  // All arguments must outlive the object, and `program` must have run. `options` is a function
  // that returns the options for another run of the step. The function's argument is the memory of
  // the inputs.
  RunComparison(Console& console, const RunFacts& facts, RunTarget& target, Program& program,
                std::function<ExecuteOptions(const std::vector<void*>&)> options);

  // Compares `values`, which are outputs of the step and results of single nodes, and prints the
  // findings. Executes the step up to three more times: once as before, and twice in float64. Fails
  // with kOutputsDiffer if values differ, and with kBadInput if the file has none of the values.
  // Also fails with the errors of the additional executions.
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
  std::string lines_;     // text for the first values that differ
  size_t shown_ = 0;      // number of values that differ, with or without text in `lines_`
  size_t misshapen_ = 0;  // number of values whose dtype or sizes differ
  std::unique_ptr<Plan> wide_plan_;
  std::optional<WidenedInputs> wide_inputs_;
};

}  // namespace fxopt
