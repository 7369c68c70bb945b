// Steps run on the CPU: the small copies of GPT-2 before and after passes, memory as it is counted,
// planted mistakes, and the traps that other executors fell into.

#include <cmath>
#include <cstring>
#include <filesystem>

#include "core/file.h"
#include "ir/io/io.h"
#include "ir/prepare.h"
#include "runtime/cpu/isa.h"
#include "runtime/plan/live.h"
#include "runtime/plan/lower.h"
#include "runtime/plan/plan.h"
#include "runtime/run/compare.h"
#include "runtime/run/far_step.h"
#include "runtime/run/host_program.h"
#include "runtime/run/inputs.h"
#include "runtime/run/tensors.h"
#include "runtime/run/widen.h"
#include "tests/catch.h"
#include "tests/runtime/cuda/emulated_kernels.h"
#include "tests/runtime/test_run.h"
#include "tests/testdata/files.h"

namespace fxopt {
namespace {

const char* const kTwinFiles[] = {"gpt2_flb_twin.pb.zst", "gpt2_joint_twin.pb.zst"};
const char* const kExact[] = {
    "canonicalize",
    "cse,dce",
    "canonicalize,cse,raise-getitems,dce",
    "canonicalize,cse,sac{policy=full},remat,dce",
    "canonicalize,cse,sac{policy=per-op},remat,dce",
    "sac{policy=full},remat,compute-cap{max-live=1MiB},dce",
};
const char* const kCuts[] = {"partition", "partition{mode=default}", "canonicalize,cse,dce,partition{mode=min-cut}",
                             "canonicalize,cse,sac{policy=full},partition,dce"};

TEST_CASE("run: the twins give the same bits before and after every exact pipeline, as one graph and as a pair") {
  for (const char* file : kTwinFiles) {
    const auto before = TestRun(load_testdata(file)).outputs();
    CHECK(before.size() >= 29);
    const auto check = [&](const char* pipeline) {
      CAPTURE(file, pipeline);
      const auto after = TestRun(load_optimized(file, pipeline)).outputs();
      CHECK(after == before);
    };
    for (const char* pipeline : kExact) check(pipeline);
    if (std::string(file).find("joint") == std::string::npos) continue;
    for (const char* pipeline : kCuts) check(pipeline);
  }
}

TEST_CASE("run: bytes that are counted are the predicted ones and workspaces") {
  for (const char* file : kTwinFiles) {
    for (const char* pipeline : kExact) {
      for (const StorageMemory memory : {StorageMemory::kBlocks, StorageMemory::kAllocator}) {
        CAPTURE(file, pipeline, static_cast<int>(memory));
        TestRun run(load_optimized(file, pipeline));
        run.options().memory = memory;
        REQUIRE(run.run().ok());
        const PlanPeak peak = peak_of(run.view(), run.values(), devices_of(run.view()).front());
        // None of these steps has a workspace at the peak.
        CHECK(run.program().counted_peak() == peak.bytes);
      }
    }
  }
}

TEST_CASE("run: blocks, guards and poison change no bit") {
  const auto arena = TestRun(load_testdata("gpt2_joint_twin.pb.zst")).outputs();
  for (const StorageMemory memory : {StorageMemory::kBlocks, StorageMemory::kAllocator}) {
    TestRun blocks(load_testdata("gpt2_joint_twin.pb.zst"));
    blocks.options().memory = memory;
    CHECK(blocks.outputs() == arena);
    CHECK_FALSE(blocks.first_difference().has_value());  // a second run, on the memory of the first
    CHECK((blocks.program().reserved_peak() > 0) == (memory == StorageMemory::kAllocator));
  }
  TestRun expandable(load_testdata("gpt2_joint_twin.pb.zst"));
  expandable.options().memory = StorageMemory::kAllocator;
  expandable.options().allocator.expandable_segments = true;
  CHECK(expandable.outputs() == arena);
  TestRun guarded(load_testdata("gpt2_joint_twin.pb.zst"));
  guarded.options().debug_memory = true;
  CHECK(guarded.outputs() == arena);
}

TEST_CASE("run: an emulated GPU draws and computes the same bits") {
  const auto one = TestRun(load_testdata("gpt2_flb_twin.pb.zst")).outputs();
  set_emulated_order(1);
  TestRun many(load_testdata("gpt2_flb_twin.pb.zst"));
  many.options().kernels = &emulated_table();
  CHECK(many.outputs() == one);
}

// A wrong kernel. It changes an element in the middle of the first result of a call, because the
// last position of a causal model reaches no output, or it writes past the end of the result. Runs
// on one thread.
struct Planted {
  static inline const FxKernel* original = nullptr;
  static inline int calls_left = 0, calls_left_at_start = 0;

  static int64_t elements(const FxView& view) {
    int64_t count = 1;
    for (int d = 0; d < view.rank; ++d) count *= view.size[d];
    return count;
  }
  static bool is_last(const FxCall* call, uint32_t phase, int64_t end) {
    const FxView& result = call->views[0];
    // Copies move float32 values as integers of the same size.
    const auto dtype = static_cast<DType>(result.dtype);
    const bool is_float = (dtype == DType::kFloat32 || dtype == DType::kInt32) && result.data != nullptr;
    return phase == 0 && is_float && end == original->units(call, phase);
  }
  static void run(const FxCall* call, uint32_t phase, int64_t first, int64_t end) {
    original->run(call, phase, first, end);
    if (!is_last(call, phase, end) || calls_left-- != 0) return;
    static_cast<float*>(call->views[0].data)[elements(call->views[0]) / 2] += 0.25f;
  }
  static void run_beyond(const FxCall* call, uint32_t phase, int64_t first, int64_t end) {
    original->run(call, phase, first, end);
    if (is_last(call, phase, end)) static_cast<float*>(call->views[0].data)[elements(call->views[0])] = 1;
  }
};

struct PlantedTable {
  std::vector<FxKernel> kernels;
  FxKernelTable table;

  PlantedTable(std::string_view name, void (*run)(const FxCall*, uint32_t, int64_t, int64_t))
      : table(**cpu_kernels("")) {
    kernels.assign(table.kernels, table.kernels + table.num_kernels);
    Planted::original = find_kernel(**cpu_kernels(""), name);
    REQUIRE(Planted::original != nullptr);
    for (FxKernel& kernel : kernels) {
      if (kernel.name == name) kernel.run = run;
    }
    table.kernels = kernels.data();
  }
};

// The step that first_far_step() finds for a mistake in one call of the float32 kernels.
uint32_t far_step(const FxKernelTable* table, int calls) {
  TestRun run(load_testdata("gpt2_flb_twin.pb.zst"));
  run.threads = 1;
  Planted::calls_left = -1;
  run.options().kernels = table;
  REQUIRE(run.run().ok());
  const std::unique_ptr<Plan> wide = widen(run.view(), run.values());
  run.inputs().restore();
  const WidenedInputs given =
      WidenedInputs::convert(run.view(), wide->view(), run.values(), run.inputs().given()).value();
  ExecuteOptions options = run.options();
  options.given = given.given();
  std::unique_ptr<HostProgram> program = HostProgram::prepare(wide->view(), run.values(), options).value();
  Planted::calls_left = calls;
  const std::optional<uint32_t> found = first_far_step(run.program(), *program, run.values()).value();
  return found.value_or(FX_NONE);
}

TEST_CASE("run: a planted mistake in each kernel is among the suspects, and alone where values of nodes are compared") {
  size_t few = 0, planted = 0;
  for (const char* name : {"add",
                           "add_rows",
                           "addmm",
                           "cat",
                           "copy",
                           "dropout",
                           "gather_rows",
                           "layer_norm",
                           "layer_norm_backward",
                           "log_softmax",
                           "log_softmax_backward",
                           "masked_scale",
                           "mm",
                           "mul",
                           "nll_loss",
                           "nll_loss_backward",
                           "pow",
                           "slice_backward",
                           "softmax",
                           "softmax_backward",
                           "sum",
                           "tanh",
                           "tanh_backward",
                           "where"}) {
    CAPTURE(name);
    const auto run_with = [&](const FxKernelTable* table, std::map<uint32_t, std::vector<std::byte>>& values,
                              uint32_t& step) {
      TestRun run(load_testdata("gpt2_flb_twin.pb.zst"));
      run.threads = 1;
      run.options().kernels = table;
      run.options().after = [&](uint32_t at) {
        const FxStep& row = run.view().steps[at];
        for (uint32_t i = 0; i < row.num_results; ++i) {
          if (kind_of(run.view().words[row.results + i]) != FX_WORD_TENSOR) continue;
          const std::vector<std::byte> bytes = run.bytes_of(run.view().words[row.results + i]);
          values[at].insert(values[at].end(), bytes.begin(), bytes.end());
        }
        if (table != nullptr && Planted::calls_left < 0 && step == FX_NONE) step = at;
      };
      // The program does not exist while it is prepared. Hooks run afterwards.
      return run.outputs();
    };
    const PlantedTable table(name, Planted::run);
    std::map<uint32_t, std::vector<std::byte>> right, wrong;
    uint32_t step = FX_NONE, none = FX_NONE;
    // The second call with a float32 result, or the only one.
    Planted::calls_left = Planted::calls_left_at_start = 1;
    const auto before = run_with(nullptr, right, none);
    auto after = run_with(&table.table, wrong, step);
    if (step == FX_NONE) {
      Planted::calls_left = Planted::calls_left_at_start = 0;
      wrong.clear();
      after = run_with(&table.table, wrong, step);
    }
    REQUIRE(step != FX_NONE);
    TestRun shown(load_testdata("gpt2_flb_twin.pb.zst"));
    const std::vector<std::string> names = output_names(shown.view());
    std::vector<Compared> outputs, nodes;
    for (uint32_t i = 0; i < shown.view().num_outputs; ++i) {
      if (before.count(names[i]) > 0) outputs.push_back({i, FX_NONE, before.at(names[i]) != after.at(names[i])});
    }
    for (const auto& [at, bytes] : right) nodes.push_back({FX_NONE, at, bytes != wrong.at(at)});
    const bool is_seen =
        std::any_of(outputs.begin(), outputs.end(), [](const Compared& value) { return value.differs; });
    if (!is_seen) WARN(name << ": no output differs");
    if (!is_seen) continue;
    ++planted;
    const std::vector<uint32_t> by_outputs = suspects(shown.view(), outputs), by_nodes = suspects(shown.view(), nodes);
    CHECK(std::find(by_outputs.begin(), by_outputs.end(), step) != by_outputs.end());
    REQUIRE_FALSE(by_nodes.empty());
    CHECK(by_nodes.front() == step);
    few += std::find(by_outputs.begin(), by_outputs.end(), step) - by_outputs.begin() < 5 ? 1 : 0;
    CHECK(far_step(&table.table, Planted::calls_left_at_start) == step);
  }
  WARN(planted
       << " kernels planted wrong: each found by values of nodes, and by distance from float64; by outputs among at "
          "most five suspects "
       << few);
  CHECK(planted >= 20);
}

TEST_CASE("run: runs that differ name the first node that does") {
  struct Unsteady {
    static void run(const FxCall* call, uint32_t phase, int64_t first, int64_t end) {
      Planted::original->run(call, phase, first, end);
      static int calls = 0;
      if (Planted::is_last(call, phase, end))
        static_cast<float*>(call->views[0].data)[0] += 0.125f * static_cast<float>(++calls);
    }
  };
  const PlantedTable table("tanh_backward", Unsteady::run);
  TestRun run(load_testdata("gpt2_flb_twin.pb.zst"));
  run.threads = 1;
  run.options().kernels = &table.table;
  REQUIRE(run.run().ok());
  const std::optional<uint32_t> step = run.first_difference();
  REQUIRE(step.has_value());
  CHECK(op_name(run.view(), run.view().steps[*step]) == "aten.tanh_backward.default");
  TestRun steady(load_testdata("gpt2_flb_twin.pb.zst"));
  REQUIRE(steady.run().ok());
  CHECK_FALSE(steady.first_difference().has_value());
}

TEST_CASE("run: a kernel that writes beyond its result is found by guards") {
  for (const char* name : {"mm", "add", "sum"}) {
    const PlantedTable table(name, Planted::run_beyond);
    TestRun run(load_testdata("gpt2_flb_twin.pb.zst"));
    run.options().kernels = &table.table;
    run.options().debug_memory = true;
    const Error error = run.run().error();
    CHECK(error.code == ErrorCode::kInternal);
    CHECK(error.message.find("its kernel wrote beyond storage") == 0);
    CHECK_FALSE(error.where.node.empty());
  }
}

// Cases of other families have graphs of every kind. Each runs, or is refused with a reason before
// any element is read.
TEST_CASE("run: graphs of all other cases whose operators have kernels") {
  const std::filesystem::path cases = std::filesystem::path(FXOPT_SOURCE_DIR) / "tests/cases";
  size_t ran = 0, refused = 0;
  for (const char* folder : {"passes", "laws", "proofs", "text", "plans"}) {
    for (const std::filesystem::directory_entry& entry :
         std::filesystem::recursive_directory_iterator(cases / folder)) {
      if (entry.path().extension() != ".fxg") continue;
      std::string text = *read_file(entry.path().string());
      text = text.substr(0, text.find("====="));
      if (text.find("fxg 0") == std::string::npos) text = "fxg 0\n" + text;
      Result<std::unique_ptr<Module>> module = parse_module(text, Format::kText, "case");
      if (!module.ok() || !prepare(**module).broken.empty()) continue;
      Result<std::unique_ptr<Plan>> plan = lower_step(**module);
      if (!plan.ok()) continue;
      InputOptions inputs;
      inputs.fill = Fill::kRandom;
      Result<std::unique_ptr<StepInputs>> bound = StepInputs::bind((*plan)->view(), inputs);
      if (!bound.ok()) continue;
      CAPTURE(entry.path().string());
      ThreadPool pool(2);
      ExecuteOptions options;
      options.kernels = *cpu_kernels("");
      options.threads = &pool;
      options.given = (*bound)->given();
      options.debug_memory = true;
      const Result<std::unique_ptr<HostProgram>> program =
          HostProgram::prepare((*plan)->view(), (*bound)->values(), options);
      const Status status = program.ok() ? (*program)->run() : Status(program.error());
      ++(status.ok() ? ran : refused);
      if (!status.ok()) CHECK(status.error().code != ErrorCode::kInternal);
    }
  }
  WARN(ran << " ran, " << refused << " were refused");
  CHECK(ran > 20);
}

// -- traps

TEST_CASE("run: an index beyond its table names the node and the element") {
  TestRun run(parsed(R"(graph @main {
  %w: f32[3, 2] = placeholder()
  %n: i64[4] = aten.arange.default(4)
  %r: f32[4, 2] = aten.embedding.default(%w, %n)
  return (%r,)
})"));
  const Error error = run.run().error();
  CHECK(error.code == ErrorCode::kRunFailed);
  CHECK(error.message == "an index is beyond its dimension, at element 3");
  CHECK(error.where.node == "r");
}

TEST_CASE("run: an assertion that fails says its message, node and line") {
  const char* const text = R"(graph @main {
  %x: b8[] = placeholder()
  %a = aten._assert_async.msg(%x, "rows must be sorted") {source={file="model.py", line=7}}
  return (%x,)
})";
  for (const bool holds : {true, false}) {
    const SafetensorsTensor tensor{"x", DType::kBool, {}, std::as_bytes(std::span(&holds, 1))};
    TestRun run(parsed(text), {{"x", {&tensor, std::nullopt, "x.safetensors"}}});
    const Status status = run.run();
    CHECK(status.ok() == holds);
    if (status.ok()) continue;
    CHECK(status.error().code == ErrorCode::kRunFailed);
    CHECK(status.error().message == "an assertion failed: rows must be sorted");
    CHECK(status.error().where.node == "a");
    CHECK(status.error().where.source == "model.py:7");
  }
}

TEST_CASE("run: an assertion holds for what is not 0, whatever its sign") {
  const char* const text = R"(graph @main {
  %x: f32[1] = placeholder()
  %m: f32[1] = aten.mul.Tensor(%x, -0.0)
  %a = aten._assert_async.default(%m)
  return (%x,)
})";
  TestRun run(parsed(text));
  CHECK_FALSE(run.run().ok());
}

TEST_CASE("run: storages are as large as the inputs make them, not as the file's hints") {
  const char* const text =
      R"fxg(symbol {name="s0", kind=backed, min=2, hint=4, graph="main", node="i", key_path=[".size()", "[0]"]}
graph @main {
  %i: f32[s0] = placeholder() {input={role=input}}
  %y: f32[s0] = aten.add.Tensor(%i, %i)
  %z: f32[s0] = aten.mul.Tensor(%y, %i)
  return (%y, %z)
})fxg";
  std::vector<float> numbers(5000, 1.5f);
  const SafetensorsTensor tensor{"i", DType::kFloat32, {5000}, std::as_bytes(std::span(numbers))};
  for (const StorageMemory memory : {StorageMemory::kArena, StorageMemory::kAllocator, StorageMemory::kBlocks}) {
    TestRun run(parsed(text), {{"i", {&tensor, std::nullopt, "i.safetensors"}}});
    run.options().memory = memory;
    run.options().debug_memory = memory == StorageMemory::kArena;
    const auto outputs = run.outputs();
    CHECK(outputs.size() == 2);
    for (const auto& [name, bytes] : outputs) {
      REQUIRE(bytes.size() == 20000);
      float last = 0;
      std::memcpy(&last, bytes.data() + 19996, sizeof last);
      CHECK((last == 3 || last == 4.5f));
    }
  }
}

TEST_CASE("run: a constant of the file is refused where an assertion or the caller reads it, too") {
  for (const char* const text : {R"(graph @main {
  %c: f32[1] = get_attr["k"]()
  %a = aten._assert_async.default(%c)
  return ()
})",
                                 R"(graph @main {
  %c: f32[1] = get_attr["k"]()
  return (%c,)
})"}) {
    TestRun run(parsed(text));
    CHECK(run.run().error().code == ErrorCode::kUnsupportedOp);
  }
}

TEST_CASE("run: an interrupted run says where") {
  TestRun run(load_testdata("gpt2_flb_twin.pb.zst"));
  int steps = 0;
  run.options().is_interrupted = [&] { return ++steps > 20; };
  CHECK(run.run().error().message == "interrupted before step 20 of 170");
}

TEST_CASE("run: devices of a file are all the CPU, and what this version does not run is refused with the node") {
  TestRun mixed(parsed(R"(graph @main {
  %x: f32[4]@cuda:0 = placeholder()
  %s: f32[]@cpu = aten.scalar_tensor.default(2, dtype=dtype(f32))
  %y: f32[4]@cuda:0 = aten.mul.Tensor(%x, %s)
  return (%y,)
})"));
  CHECK(mixed.outputs().size() == 1);
  TestRun constant(parsed(R"(constant {name="c", tensor=f32[4], inline_data=base64"AACAPwAAgD8AAIA/AACAPw=="}
graph @main {
  attribute {path="c", constant="c"}
  %x: f32[4] = placeholder()
  %c: f32[4] = get_attr["c"]()
  %y: f32[4] = aten.mul.Tensor(%x, %c)
  return (%y,)
})"));
  const Error error = constant.run().error();
  CHECK(error.code == ErrorCode::kUnsupportedOp);
  CHECK(error.where.node == "y");
  CHECK(error.message.find("a constant of the file") != std::string::npos);
}

// No operator gives such records. A kernel would access elements out of bounds, or never end.
TEST_CASE("run: calls whose sizes or types do not fit are refused") {
  const auto refused = [](const std::string& inputs, const std::string& call) {
    TestRun run(parsed("graph @main {\n" + inputs + "  %r: " + call + "\n  return (%r,)\n}"));
    CAPTURE(call);
    const Error error = run.run().error();
    CHECK(error.code == ErrorCode::kUnsupportedOp);
    CHECK(error.where.node == "r");
  };
  const std::string x = "  %x: f32[2, 3] = placeholder()\n", n = "  %n: i64[2, 3] = placeholder()\n";
  refused(n, "i64[2, 3] = aten._softmax.default(%n, 1, False)");
  refused(x, "f32[2] = aten.sum.dim_IntList(%x, [0])");
  refused(x, "f32[30] = aten.sum.dim_IntList(%x, [0])");
  refused(x, "f32[2] = aten.sum.dim_IntList(%x, [7])");
  refused(x, "f32[2, 3] = aten._softmax.default(%x, 70000, False)");
  refused(x, "f32[2, 3] = aten._softmax.default(%x, -3, False)");
  refused(x, "f32[2, 4] = aten.mul.Tensor(%x, 2)");
  refused(x + "  %y: f32[2, 2] = placeholder()\n", "f32[2, 3] = aten.mul.Tensor(%x, %y)");
  refused(x, "f32[3, 2] = aten.mm.default(%x, %x)");
  refused(x, "f32[3, 3] = aten.cat.default([%x, %x])");
  refused(x, "f32[6] = aten.clone.default(%x)");
  refused(x + "  %i: i64[2, 3] = placeholder()\n", "f32[2, 3, 4] = aten.embedding.default(%x, %i)");
  refused(x, "f32[2, 4] = aten.slice_backward.default(%x, [2, 4], 1, 0, 9, 2)");
  refused(x, "f32[2, 9] = aten.slice_backward.default(%x, [2, 9], 1, 0, 9, 1)");
  refused(x + "  %b: f32[5] = placeholder()\n  %w: f32[3, 4] = placeholder()\n",
          "f32[2, 4] = aten.addmm.default(%b, %x, %w)");
}

TEST_CASE("run: offsets beyond 32 bits, by views that cost no memory") {
  TestRun run(parsed(R"(graph @main {
  %x: u8[1] = placeholder()
  %e: u8[2147483656](0) = aten.expand.default(%x, [2147483656])
  %s: i64[] = aten.sum.dim_IntList(%e, [0])
  return (%s,)
})"));
  REQUIRE(run.run().ok());
  int64_t sum = 0;
  std::memcpy(&sum, run.bytes_of(run.view().outputs[0].value).data(), 8);
  CHECK((sum == 0 || sum == 2147483656));  // the input is 0 or 1
}

TEST_CASE("run: what is written in place and read at another place is refused") {
  TestRun run(parsed(R"(graph @main {
  %x: f32[3, 3] = placeholder()
  %t: f32[3, 3](1, 3) = aten.t.default(%x)
  %r: f32[3, 3] = aten.add_.Tensor(%x, %t)
  return (%r,)
})"));
  const Error error = run.run().error();
  CHECK(error.code == ErrorCode::kUnsupportedOp);
  CHECK(error.message.find("its result overlaps an operand or itself in memory") != std::string::npos);
  TestRun expanded(parsed(R"(graph @main {
  %x: f32[1] = placeholder()
  %y: f32[4] = placeholder()
  %e: f32[4](0) = aten.expand.default(%x, [4])
  %r: f32[4](0) = aten.copy_.default(%e, %y)
  return (%r,)
})"));
  CHECK_FALSE(expanded.run().ok());
}

TEST_CASE("run: a write through a view is seen through the tensor, and a given file is not written") {
  const float numbers[4] = {1, 2, 3, 4};
  SafetensorsTensor tensor{"x", DType::kFloat32, {2, 2}, std::as_bytes(std::span(numbers))};
  std::map<std::string, GivenInput, std::less<>> given{{"x", {&tensor, std::nullopt, "x.safetensors"}}};
  TestRun run(parsed(R"(graph @main {
  %x: f32[2, 2] = placeholder()
  %t: f32[2, 2](1, 2) = aten.t.default(%x)
  %m: f32[2, 2](1, 2) = aten.mul_.Tensor(%t, 2)
  %y: f32[2, 2] = aten.add.Tensor(%x, 0.5)
  return (%x, %y)
})"),
              given);
  for (int repeat = 0; repeat < 2; ++repeat) {  // the second run starts with the given input again
    REQUIRE(run.run().ok());
    float x[4], y[4];
    std::memcpy(x, run.bytes_of(run.view().outputs[0].value).data(), sizeof x);
    std::memcpy(y, run.bytes_of(run.view().outputs[1].value).data(), sizeof y);
    for (int i = 0; i < 4; ++i) {
      CHECK(x[i] == 2 * numbers[i]);
      CHECK(y[i] == 2 * numbers[i] + 0.5f);
    }
  }
  CHECK(numbers[3] == 4);
}

TEST_CASE("run: more memory than there is is refused, for the arena and for inputs") {
  TestRun arena(parsed(R"(graph @main {
  %x: f32[1099511627776, 4] = aten.zeros.default([1099511627776, 4], dtype=dtype(f32))
  %y: f32[4] = aten.sum.dim_IntList(%x, [0])
  return (%y,)
})"));
  const Error error = arena.run().error();
  CHECK(error.code == ErrorCode::kOutOfMemory);
  // %x and %y are both live at %y.
  CHECK(error.where.node == "y");
  // The size includes partial sums.
  CHECK(error.message.find("the step needs 17596481012224 bytes") == 0);
  std::unique_ptr<Module> module =
      parsed("graph @main {\n  %x: f32[1099511627776, 4] = placeholder()\n  return (%x,)\n}");
  REQUIRE(prepare(*module).broken.empty());
  std::unique_ptr<Plan> plan = lower_step(*module).value();
  InputOptions options;
  options.fill = Fill::kZeros;
  CHECK(StepInputs::bind(plan->view(), options).error().code == ErrorCode::kOutOfMemory);
}

TEST_CASE("run: inputs of other dtypes, sizes and ranges are refused before anything runs") {
  const float numbers[6] = {};
  const auto bind = [&](DType dtype, std::vector<int64_t> sizes, const char* text) {
    std::unique_ptr<Module> module = parsed(text);
    REQUIRE(prepare(*module).broken.empty());
    std::unique_ptr<Plan> plan = lower_step(*module).value();
    size_t count = 1;
    for (const int64_t size : sizes) count *= static_cast<size_t>(size);
    const SafetensorsTensor tensor{"x", dtype, std::move(sizes), std::as_bytes(std::span(numbers)).first(count * 4)};
    InputOptions options;
    options.given["x"] = {&tensor, std::nullopt, "x.safetensors"};
    const Result<std::unique_ptr<StepInputs>> inputs = StepInputs::bind(plan->view(), options);
    return inputs.ok() ? std::string("ok") : inputs.error().message;
  };
  const char* const fixed =
      "graph @main {\n  %x: f32[2, 3] = placeholder()\n  %y: f32[2, 3] = aten.mul.Tensor(%x, 2)\n  return (%y,)\n}";
  CHECK(bind(DType::kFloat32, {2, 3}, fixed) == "ok");
  CHECK(bind(DType::kFloat32, {3, 2}, fixed) == "f32[3, 2] is given for an input of f32[2, 3]");
  CHECK(bind(DType::kFloat32, {6}, fixed) == "f32[6] is given for an input of f32[2, 3]");
  CHECK(bind(DType::kInt32, {2, 3}, fixed) == "i32[2, 3] is given for an input of f32[2, 3]");
  const char* const symbolic = R"(symbol {name="s0", kind=backed, min=2, max=4, hint=3}
graph @main {
  %x: f32[s0] = placeholder()
  %y: f32[s0] = aten.mul.Tensor(%x, 2)
  return (%y,)
})";
  CHECK(bind(DType::kFloat32, {2}, symbolic) == "ok");
  CHECK(bind(DType::kFloat32, {4}, symbolic) == "ok");
  CHECK(bind(DType::kFloat32, {6}, symbolic) == "the symbol s0 is 6, but the graph was traced for 2 to 4");
}

TEST_CASE("run: numbers below the smallest normal one are kept") {
  TestRun run(parsed(R"(graph @main {
  %x: f32[] = aten.scalar_tensor.default(1e-38, dtype=dtype(f32))
  %y: f32[] = aten.mul.Tensor(%x, 0.25)
  return (%y,)
})"));
  REQUIRE(run.run().ok());
  float y = 0;
  std::memcpy(&y, run.bytes_of(run.view().outputs[0].value).data(), 4);
  CHECK(y > 0);
  CHECK(y < std::numeric_limits<float>::min());
  ThreadPool pool(3);
  CHECK(pool.keeps_subnormals());
}

}  // namespace
}  // namespace fxopt
