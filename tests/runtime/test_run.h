// Helpers for tests that run steps on the CPU.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/io/io.h"
#include "ir/prepare.h"
#include "runtime/cpu/isa.h"
#include "runtime/plan/lower.h"
#include "runtime/plan/plan.h"
#include "runtime/run/compare.h"
#include "runtime/run/host_program.h"
#include "runtime/run/inputs.h"
#include "runtime/run/tensors.h"
#include "tests/catch.h"
#include "tests/must.h"

namespace fxopt {

// A step with generated inputs.
class TestRun {
 public:
  explicit TestRun(std::unique_ptr<Module> module, const std::map<std::string, GivenInput, std::less<>>& given = {})
      : module_(std::move(module)) {
    for (const Error& error : prepare(*module_).broken) FAIL(format_error(error));
    plan_ = must(lower_step(*module_));
    InputOptions options;
    options.fill = Fill::kRandom;
    options.given = given;
    inputs_ = must(StepInputs::bind(view(), options));
  }

  const FxPlan& view() { return plan_->view(); }
  const ScalarValues& values() const { return inputs_->values(); }
  StepInputs& inputs() { return *inputs_; }
  ExecuteOptions& options() { return options_; }
  Program& program() { return *program_; }
  std::optional<uint32_t> first_difference() {
    return program_->first_difference([&] { inputs_->restore(); });
  }

  uint32_t threads = 2;

  Status run() {
    pool_ = std::make_unique<ThreadPool>(threads);
    options_.threads = pool_.get();
    options_.alone_elements = 0;
    if (options_.kernels == nullptr) options_.kernels = *cpu_kernels("");
    options_.given = inputs_->given();
    inputs_->restore();
    Result<std::unique_ptr<HostProgram>> program = HostProgram::prepare(view(), values(), options_);
    if (!program.ok()) return program.error();
    program_ = *std::move(program);
    return program_->run();
  }

  std::vector<std::byte> bytes_of(FxWord word) {
    const std::optional<PlacedTensor> tensor = placed_tensor(view(), values(), index_of(word));
    REQUIRE(tensor.has_value());
    return copy_out(*tensor, program_->bytes_of(tensor->storage));
  }

  // Runs the step. Returns the outputs that are tensors, by name.
  std::map<std::string, std::vector<std::byte>> outputs() {
    must(run());
    std::map<std::string, std::vector<std::byte>> found;
    const std::vector<std::string> names = output_names(view());
    for (uint64_t i = 0; i < view().num_outputs; ++i) {
      if (kind_of(view().outputs[i].value) == FX_WORD_TENSOR) found[names[i]] = bytes_of(view().outputs[i].value);
    }
    return found;
  }

 private:
  std::unique_ptr<Module> module_;  // the lowered module, whose names are in the plan
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<StepInputs> inputs_;
  std::unique_ptr<ThreadPool> pool_;
  ExecuteOptions options_;
  std::unique_ptr<Program> program_;
};

inline std::unique_ptr<Module> parsed(const std::string& text) {
  return must(parse_module("fxg 0\n" + text, Format::kText, "test.fxg"));
}

}  // namespace fxopt
