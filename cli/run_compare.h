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

// What --expect asks: the values of a run beside those of a file, what one mistake could be in where they differ, and the first
// node that is far from itself in float64.
class RunComparison {
 public:
  // All arguments outlive the object. `options` makes the options of another run of the step, with memory of the caller's storages.
  // `program` has run.
  RunComparison(Console& console, const RunFacts& facts, RunTarget& target, Program& program,
                std::function<ExecuteOptions(const std::vector<void*>&)> options);

  // `values`: outputs, and results of steps. Prints what it finds. Errors: kOutputsDiffer; kBadInput where the file has none of the values;
  // those of the runs in float64. Runs the step up to three times more.
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
  std::string lines_;  // of values that differ
  size_t shown_ = 0;   // of them, with those beyond the lines
  size_t misshapen_ = 0;
  std::unique_ptr<Plan> wide_plan_;
  std::optional<WidenedInputs> wide_inputs_;
};

}  // namespace fxopt
