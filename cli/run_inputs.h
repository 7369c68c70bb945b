#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run_step.h"
#include "core/result.h"
#include "ir/graph/module.h"
#include "ir/io/npy.h"
#include "ir/io/safetensors.h"
#include "runtime/plan/evaluate.h"
#include "runtime/run/inputs.h"

namespace fxopt {

// The inputs of a run: files of tensors, values of inputs, and dropout masks.
class RunInputs {
 public:
  // All arguments must outlive the object.
  RunInputs(const Module& module, const FxPlan& plan, const RunStepFlags& flags, const ScalarValues::SymbolOf& symbols)
      : module_(module), plan_(plan), flags_(flags), symbols_(symbols) {}

  // Reads the inputs that the flags name and binds them to the step. Errors:
  // - kBadOptionValue for an invalid --input
  // - kBadInput if a file has no tensor of a required name
  // - the errors of reading the files, and of StepInputs::bind()
  Status bind();

  StepInputs& bound() const { return *inputs_; }
  const ScalarValues& values() const { return inputs_->values(); }
  // The values of the module's symbols, derived from the inputs.
  SymbolValues symbols() const;

  // Opens a file of tensors. The file is mapped only once, and remains valid as long as this object
  // exists. Fails with the errors of reading the file.
  Result<const SafetensorsFile*> open(const std::string& path);

  // The number of used tensors of each --inputs and --state file: "3 of 12 tensors of
  // batch.safetensors".
  const std::vector<std::string>& used() const { return used_; }

  bool has_draws() const { return !drawn_.empty(); }
  // Returns the dropout mask that --draws gives for a step of the plan, or null if there is no
  // mask.
  const void* drawn(uint32_t step) const;

 private:
  Status open_files();
  bool is_input(std::string_view name) const;
  Status add_input(const std::string& text);
  Status find_draws();
  std::optional<int64_t> symbol_value(std::string_view name) const;

  const Module& module_;
  const FxPlan& plan_;
  const RunStepFlags& flags_;
  const ScalarValues::SymbolOf& symbols_;
  std::map<std::string, SafetensorsFile> files_;
  std::vector<std::unique_ptr<NpyFile>> arrays_;
  InputOptions options_;
  std::vector<std::string> used_;
  std::unique_ptr<StepInputs> inputs_;
  std::map<uint32_t, const void*> drawn_;  // dropout masks, by step of the plan
};

}  // namespace fxopt
