// Several threads share the units of a step. It is a separate program, small enough to be built
// alone with the thread sanitizer (`cmake --build --preset tsan --target fxopt_thread_tests`).

#include "runtime/cpu/threads.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "ir/io/io.h"
#include "ir/prepare.h"
#include "runtime/cpu/isa.h"
#include "runtime/plan/lower.h"
#include "runtime/run/host_program.h"
#include "runtime/run/inputs.h"
#include "runtime/run/tensors.h"
#include "tests/catch.h"
#include "tests/must.h"

namespace fxopt {
namespace {

struct Step {
  std::unique_ptr<Plan> plan;
  std::unique_ptr<StepInputs> inputs;
};

Step step_of(Result<std::unique_ptr<Module>> given) {
  const std::unique_ptr<Module> module = must(std::move(given));
  REQUIRE(prepare(*module).broken.empty());
  std::unique_ptr<Plan> plan = lower_step(*module).value();
  InputOptions options;
  options.fill = Fill::kRandom;
  std::unique_ptr<StepInputs> inputs = StepInputs::bind(plan->view(), options).value();
  return {std::move(plan), std::move(inputs)};
}

std::vector<std::vector<std::byte>> outputs_of(Step& step, ThreadPool& pool, Status& status) {
  ExecuteOptions options;
  options.kernels = *cpu_kernels("");
  options.threads = &pool;
  options.alone_elements = 0;
  options.given = step.inputs->given();
  const FxPlan& plan = step.plan->view();
  const std::unique_ptr<HostProgram> program = HostProgram::prepare(plan, step.inputs->values(), options).value();
  status = program->run();
  std::vector<std::vector<std::byte>> outputs;
  for (uint64_t i = 0; i < plan.num_outputs; ++i) {
    if (kind_of(plan.outputs[i].value) != FX_WORD_TENSOR) continue;
    const std::optional<PlacedTensor> tensor =
        placed_tensor(plan, step.inputs->values(), index_of(plan.outputs[i].value));
    outputs.push_back(copy_out(*tensor, program->bytes_of(tensor->storage)));
  }
  return outputs;
}

TEST_CASE("threads: a training step has the same bits, whoever runs its units") {
  Step step = step_of(load_module(std::string(FXOPT_SOURCE_DIR "/testdata/gpt2_flb_twin.pb.zst")));
  Status status = ok_status();
  ThreadPool one(1);
  const auto alone = outputs_of(step, one, status);
  REQUIRE(status.ok());
  for (const uint32_t threads : {2u, 3u, 8u}) {
    ThreadPool pool(threads);
    for (int repeat = 0; repeat < 5; ++repeat) {
      CHECK(outputs_of(step, pool, status) == alone);
      CHECK(status.ok());
    }
    CHECK(pool.keeps_subnormals());
  }
}

TEST_CASE("threads: the error of the smallest element wins") {
  Step step = step_of(parse_module(R"(fxg 0
graph @main {
  %w: f32[4000, 40] = placeholder()
  %n: i64[5000] = aten.arange.default(5000)
  %r: f32[5000, 40] = aten.embedding.default(%w, %n)
  return (%r,)
})",
                                   Format::kText, "text"));
  ThreadPool pool(8);
  for (int repeat = 0; repeat < 10; ++repeat) {
    Status status = ok_status();
    outputs_of(step, pool, status);
    CHECK(status.error().message == "an index is beyond its dimension, at element 4000");
  }
}

TEST_CASE("threads: each unit is run once") {
  ThreadPool pool(8);
  for (const int64_t units : {0, 1, 7, 8, 31, 1000}) {
    std::vector<std::atomic<int>> runs(static_cast<size_t>(units));
    pool.run(units, [&](int64_t first, int64_t end) {
      for (int64_t i = first; i < end; ++i) ++runs[static_cast<size_t>(i)];
    });
    for (const std::atomic<int>& count : runs) CHECK(count == 1);
  }
}

TEST_CASE("threads: hundreds of them are asked for subnormals without spinning") {
  ThreadPool pool(300);
  CHECK(pool.keeps_subnormals());
}

}  // namespace
}  // namespace fxopt
