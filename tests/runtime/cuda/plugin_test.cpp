// The CUDA plugin, as it is shipped, on a driver that runs its kernels on the CPU
// (fake_driver.cpp): its results to the bit, its memory and its errors.

#include <cstdio>
#include <dlfcn.h>
#include <random>
#include <sys/wait.h>

#include "core/file.h"
#include "ir/alias/storages.h"
#include "ir/memory/memory.h"
#include "ir/memory/replay.h"
#include "ir/memory/trace.h"
#include "runtime/run/device_program.h"
#include "tests/catch.h"
#include "tests/count.h"
#include "tests/must.h"
#include "tests/runtime/cuda/fake_driver.h"
#include "tests/runtime/test_run.h"
#include "tests/testdata/files.h"

namespace fxopt {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

// The fake's own functions. The fake has the driver's SONAME, so that the plugin finds it.
struct FakeDriver {
  void* library = dlopen(FXOPT_FAKE_DRIVER, RTLD_NOW | RTLD_LOCAL);
  template <class Function>
  Function* find(const char* name) const {
    if (library == nullptr) FAIL(dlerror());
    return reinterpret_cast<Function*>(dlsym(library, name));
  }
  void reset(int32_t devices = 1, int64_t memory = 8 * kGiB) const {
    find<decltype(fake_cuda_reset)>("fake_cuda_reset")(devices, memory, 13000);
  }
  void set_order(uint64_t seed) const { find<decltype(fake_cuda_set_order)>("fake_cuda_set_order")(seed); }
  void fail_call(uint64_t number) const { find<decltype(fake_cuda_fail_call)>("fake_cuda_fail_call")(number); }
  uint64_t num_calls() const { return find<decltype(fake_cuda_num_calls)>("fake_cuda_num_calls")(); }
  std::string failed_call() const { return find<decltype(fake_cuda_failed_call)>("fake_cuda_failed_call")(); }
  std::string held() const { return find<decltype(fake_cuda_held)>("fake_cuda_held")(); }
  std::string faults() const { return find<decltype(fake_cuda_faults)>("fake_cuda_faults")(); }
};
const FakeDriver& fake() {
  static const FakeDriver driver;
  return driver;
}

// $FXOPT_TEST_PLUGIN names a plugin with a mistake in it.
std::string plugin_path() {
  const char* other = std::getenv("FXOPT_TEST_PLUGIN");
  return other == nullptr ? FXOPT_PLUGIN : other;
}

Result<std::unique_ptr<PluginDevice>> open_gpu() {
  fake();
  const Result<Plugin> plugin = open_plugin("cuda", plugin_path());
  if (!plugin.ok()) return plugin.error();
  return PluginDevice::open(*plugin, 0);
}

using Outputs = std::map<std::string, std::vector<std::byte>>;

// A step on the GPU, with the inputs that TestRun makes up.
class GpuRun {
 public:
  explicit GpuRun(std::unique_ptr<Module> module) : step_(std::move(module)) {}

  ExecuteOptions options;
  DeviceOptions device_options;

  FxPlan view() { return step_.view(); }
  DeviceProgram& program() { return *program_; }

  Status prepare() {
    Result<std::unique_ptr<PluginDevice>> device = open_gpu();
    if (!device.ok()) return device.error();
    device_ = *std::move(device);
    options.given = step_.inputs().given();
    Result<std::unique_ptr<DeviceProgram>> program =
        DeviceProgram::prepare(step_.view(), step_.values(), options, *device_, device_options);
    if (!program.ok()) return program.error();
    program_ = *std::move(program);
    return ok_status();
  }

  Status run(Outputs& outputs) {
    if (Status status = prepare(); !status.ok()) return status;
    if (Status status = program_->run(); !status.ok()) return status;
    outputs = read();
    return program_->read_status();
  }

  Outputs read() {
    Outputs found;
    const FxPlan& plan = step_.view();
    const std::vector<std::string> names = output_names(plan);
    for (uint64_t i = 0; i < plan.num_outputs; ++i) {
      if (kind_of(plan.outputs[i].value) != FX_WORD_TENSOR) continue;
      const std::optional<PlacedTensor> tensor = placed_tensor(plan, step_.values(), index_of(plan.outputs[i].value));
      found[names[i]] = copy_out(*tensor, program_->bytes_of(tensor->storage));
    }
    return found;
  }

 private:
  TestRun step_;
  std::unique_ptr<PluginDevice> device_;
  std::unique_ptr<DeviceProgram> program_;
};

void check_clean() {
  CHECK(fake().faults() == "");
  CHECK(fake().held() == "");
}

const char* const kTwinFiles[] = {"gpt2_flb_twin.pb.zst", "gpt2_joint_twin.pb.zst"};

TEST_CASE("plugin: the twins have the CPU's bits in every legal order of streams") {
  const uint64_t orders = std::getenv("FXOPT_TEST_PLUGIN") != nullptr ? 1 : count_given("FXOPT_TEST_ORDERS", 5);
  for (const char* file : kTwinFiles) {
    const Outputs expected = TestRun(load_testdata(file)).outputs();
    for (uint64_t order = 0; order <= orders; ++order) {
      for (const uint32_t streams : {1u, 4u}) {
        CAPTURE(file, order, streams);
        fake().reset();
        fake().set_order(order);
        Outputs outputs;
        {
          GpuRun run(load_testdata(file));
          run.device_options.streams = streams;
          must(run.run(outputs));
          CHECK((run.program().device_seconds() > 0));
        }
        CHECK((outputs == expected));
        check_clean();
      }
    }
  }
}

TEST_CASE("plugin: storages of the caching allocator give the same bits, in segments of both kinds") {
  for (const char* file : kTwinFiles) {
    const Outputs expected = TestRun(load_testdata(file)).outputs();
    for (const bool is_expandable : {false, true}) {
      CAPTURE(file, is_expandable);
      fake().reset();
      Outputs outputs;
      {
        GpuRun run(load_testdata(file));
        run.options.memory = StorageMemory::kAllocator;
        run.options.allocator.expandable_segments = is_expandable;
        must(run.run(outputs));
        CHECK(run.program().reserved_peak() > 0);
        CHECK(run.program().counted_peak() > run.program().given_bytes());
        REQUIRE(run.program().upload().ok());
        REQUIRE(run.program().run().ok());
        CHECK((run.read() == expected));
      }
      CHECK((outputs == expected));
      check_clean();
    }
  }
}

// Steps without elements launch nothing, but they order others all the same: a step that waits for
// one also waits for all that it depends on.
const char* const kEmpty = R"(graph @main {
  %a: f32[64, 64] = placeholder()
  %p: f32[64, 64] = aten.mm.default(%a, %a)
  %q: f32[64, 64] = aten.tanh.default(%a)
  %p1: f32[64, 64] = aten.mm.default(%p, %p)
  %q1: f32[64, 64] = aten.tanh.default(%q)
  %p0: f32[0, 64] = aten.slice.Tensor(%p1, 0, 0, 0)
  %q0: f32[0, 64] = aten.slice.Tensor(%q1, 0, 0, 0)
  %none: f32[0, 64] = aten.add.Tensor(%p0, %q0)
  %r: f32[64, 64] = aten.cat.default([%none, %q1])
  %s: f32[64, 64] = aten.cat.default([%none, %p1])
  %t: f32[64, 64] = aten.cat.default([%none, %p])
  return (%r, %s, %t)
}
)";

TEST_CASE("plugin: a step that launches nothing keeps its place among streams") {
  const Outputs expected = TestRun(parsed(kEmpty)).outputs();
  for (uint64_t order = 1; order <= 40; ++order) {
    fake().reset();
    fake().set_order(order);
    GpuRun run(parsed(kEmpty));
    run.device_options.streams = 1 + order % 4;
    Outputs outputs;
    must(run.run(outputs));
    CAPTURE(order);
    CHECK((outputs == expected));
  }
}

// The allocator's events that `mem` predicts, from the first node on.
class Predicted final : public ReplayListener {
 public:
  explicit Predicted(const Module& module) {
    const Graph& graph = module.main();
    const StorageMap storages(graph);
    const MemoryReport memory = analyze_memory(graph, storages);
    ReplayOptions options;
    options.listener = this;
    replay_allocator(trace_memory(graph, storages, memory, memory.devices.front().device, {}, {}), options);
  }
  std::vector<std::pair<AllocatorAction, int64_t>> events;

 private:
  void on_begin(const std::vector<uint64_t>&) override { events.clear(); }
  void on_event(uint32_t, uint32_t, const AllocatorEvent& event) override {
    events.emplace_back(event.action, event.bytes);
  }
  void on_end(const CachingAllocator&) override {}
};

TEST_CASE("plugin: the allocator's events are those that mem predicts, one by one") {
  for (const char* file : kTwinFiles) {
    for (const char* passes : {"", "canonicalize,cse,dce", "canonicalize,cse,sac{policy=full},remat,dce"}) {
      CAPTURE(file, passes);
      const Predicted predicted(*load_optimized(file, passes));
      fake().reset();
      std::vector<std::pair<AllocatorAction, int64_t>> events;
      GpuRun run(load_optimized(file, passes));
      run.options.memory = StorageMemory::kAllocator;
      run.device_options.observe_allocator = [&](const AllocatorEvent& event) {
        events.emplace_back(event.action, event.bytes);
      };
      REQUIRE(run.prepare().ok());
      // The inputs are allocated before the first node.
      REQUIRE(events.size() > predicted.events.size());
      events.erase(events.begin(), events.end() - static_cast<std::ptrdiff_t>(predicted.events.size()));
      size_t first = 0;
      while (first < events.size() && events[first] == predicted.events[first]) ++first;
      CAPTURE(first, events.size());
      CHECK(first == events.size());
    }
  }
}

const char* const kIndexed = R"(graph @main {
  %w: f32[10, 4] = placeholder() {input={role=parameter}}
  %ids: i64[6] = placeholder()
  %e: f32[6, 4] = aten.embedding.default(%w, %ids)
  %s: f32[4] = aten.sum.dim_IntList(%e, [0], False)
  return (%s,)
}
)";

TEST_CASE("plugin: an index beyond its dimension names its node, and the next run is right") {
  fake().reset();
  {
    GpuRun run(parsed(kIndexed));
    REQUIRE(run.prepare().ok());
    REQUIRE(run.program().run().ok());
    const Outputs expected = run.read();
    auto* ids = static_cast<int64_t*>(run.options.given[1]);
    const int64_t kept = ids[4];
    ids[4] = 12;
    REQUIRE(run.program().upload().ok());
    const Error error = run.program().run().error();
    CHECK(error.code == ErrorCode::kRunFailed);
    CHECK(error.where.node == "e");
    CHECK(error.message == "an index is beyond its dimension, at element 4");
    ids[4] = kept;
    REQUIRE(run.program().upload().ok());
    REQUIRE(run.program().run().ok());
    CHECK((run.read() == expected));
  }
  check_clean();
}

TEST_CASE("plugin: an assertion is looked at when its memory may be used again") {
  const auto run_with = [](float x) {
    GpuRun run(parsed(R"(graph @main {
  %x: f32[] = placeholder()
  %two: f32[] = aten.scalar_tensor.default(2.0)
  %small: b8[] = aten.le.Tensor(%x, %two)
  %assert: None = aten._assert_async.msg(%small, "x is too large")
  %y: b8[] = aten.le.Tensor(%two, %x)
  return (%y,)
}
)"));
    must(run.prepare());
    *static_cast<float*>(run.options.given[0]) = x;
    REQUIRE(run.program().upload().ok());
    return run.program().run();
  };
  fake().reset();
  CHECK(run_with(1).ok());
  CHECK(run_with(3).error().message == "an assertion failed: x is too large");
  check_clean();
}

TEST_CASE("plugin: what memory lacks is said with the node, what was asked and what was free") {
  for (const StorageMemory memory : {StorageMemory::kArena, StorageMemory::kAllocator}) {
    fake().reset(1, 3 << 20);
    Status status = ok_status();
    {
      GpuRun run(parsed(R"(graph @main {
  %x: f32[1024] = placeholder()
  %a: f32[1024, 1024](0, 1) = aten.expand.default(%x, [1024, 1024])
  %b: f32[1024, 1024] = aten.mul.Tensor(%a, 2.0)
  return (%b,)
}
)"));
      run.options.memory = memory;
      status = run.prepare();
    }
    REQUIRE_FALSE(status.ok());
    CAPTURE(status.error().message);
    CHECK(status.error().code == ErrorCode::kOutOfMemory);
    CHECK(status.error().where.node == "b");
    CHECK(status.error().message.find("4194304 bytes") != std::string::npos);
    CHECK(status.error().message.find("free") != std::string::npos);
    check_clean();
  }
}

// 60 MiB, then three of 20 MiB whose middle one ends first, then 60 MiB again.
const char* const kHoles = R"(graph @main {
  %i: f32[16] = placeholder()
  %x: f32[15728640] = aten.zeros.default([15728640])
  %s: f32[] = aten.sum.dim_IntList(%x, [0], False)
  %p: f32[5242880] = aten.zeros.default([5242880])
  %u: f32[5242880] = aten.zeros.default([5242880])
  %q: f32[5242880] = aten.zeros.default([5242880])
  %s1: f32[] = aten.sum.dim_IntList(%u, [0], False)
  %y: f32[15728640] = aten.zeros.default([15728640])
  %t: f32[] = aten.sum.dim_IntList(%y, [0], False)
  %s2: f32[] = aten.sum.dim_IntList(%p, [0], False)
  %s3: f32[] = aten.sum.dim_IntList(%q, [0], False)
  return (%s, %t, %s1, %s2, %s3)
}
)";

TEST_CASE("plugin: memory that the allocator would give back while the step runs is said to be lacking") {
  for (const bool is_expandable : {false, true}) {
    for (const int64_t megabytes : {90, 100, 110}) {
      fake().reset(1, megabytes << 20);
      Status status = ok_status();
      {
        GpuRun run(parsed(kHoles));
        run.options.memory = StorageMemory::kAllocator;
        run.options.allocator.expandable_segments = is_expandable;
        status = run.prepare();
      }
      CAPTURE(is_expandable, megabytes);
      REQUIRE_FALSE(status.ok());
      CHECK(status.error().code == ErrorCode::kOutOfMemory);
      CHECK(status.error().where.node == "y");
      check_clean();
    }
  }
}

TEST_CASE("plugin: an assertion that guards an index is told before it") {
  fake().reset();
  {
    GpuRun run(parsed(R"(graph @main {
  %w: f32[10, 4] = placeholder() {input={role=parameter}}
  %ids: i64[6] = placeholder()
  %ok: b8[1] = placeholder()
  %a: None = aten._assert_async.msg(%ok, "ids are out of range")
  %e: f32[6, 4] = aten.embedding.default(%w, %ids)
  return (%e,)
}
)"));
    REQUIRE(run.prepare().ok());
    static_cast<int64_t*>(run.options.given[1])[2] = 99;
    *static_cast<bool*>(run.options.given[2]) = false;
    REQUIRE(run.program().upload().ok());
    CHECK(run.program().run().error().message == "an assertion failed: ids are out of range");
  }
  check_clean();
}

TEST_CASE("plugin: each step alone gives the same values and a time for each") {
  fake().reset();
  {
    const Outputs expected = TestRun(load_testdata(kTwinFiles[0])).outputs();
    GpuRun run(load_testdata(kTwinFiles[0]));
    REQUIRE(run.prepare().ok());
    const std::vector<FxStepTime> times = run.program().time_steps().value();
    size_t timed = 0;
    for (const FxStepTime& time : times) timed += time.device_seconds > 0 ? 1 : 0;
    CHECK(timed == 170);
    CHECK((run.read() == expected));
  }
  check_clean();
}

// A graph of about thirty nodes.
const char* const kSmall = R"(graph @main {
  %x: f32[3, 40] = placeholder()
  %w: f32[40, 40] = placeholder() {input={role=parameter}}
  %m1: f32[3, 40] = aten.mm.default(%x, %w)
  %t1: f32[3, 40] = aten.tanh.default(%m1)
  %a1: f32[3, 40] = aten.add.Tensor(%t1, %x)
  %m2: f32[3, 40] = aten.mm.default(%a1, %w)
  %t2: f32[3, 40] = aten.tanh.default(%m2)
  %a2: f32[3, 40] = aten.add.Tensor(%t2, %a1)
  %s2: f32[3, 40] = aten._softmax.default(%a2, 1, False)
  %p2: f32[3, 40] = aten.pow.Tensor_Scalar(%s2, 2.0)
  %m3: f32[3, 40] = aten.mm.default(%p2, %w)
  %t3: f32[3, 40] = aten.tanh.default(%m3)
  %a3: f32[3, 40] = aten.add.Tensor(%t3, %a2)
  %l3: f32[3, 40] = aten._log_softmax.default(%a3, 1, False)
  %u1: f32[3, 40] = aten.mul.Tensor(%a1, 2.0)
  %u2: f32[3, 40] = aten.mul.Tensor(%u1, %a2)
  %u3: f32[3, 40] = aten.tanh.default(%u2)
  %u4: f32[3, 40] = aten.mul.Tensor(%u3, %t1)
  %v1: f32[3, 40] = aten.sub.Tensor(%x, %t2)
  %v2: f32[3, 40] = aten.tanh.default(%v1)
  %v3: f32[3, 40] = aten.mul.Tensor(%v2, %v1)
  %z: f32[3, 40] = aten.add.Tensor(%u4, %v3)
  %z2: f32[3, 40] = aten.add.Tensor(%z, %l3)
  %sum: f32[40] = aten.sum.dim_IntList(%z2, [0], False)
  %most: f32[3] = aten.amax.default(%z2, [1], False)
  return (%z2, %sum, %most)
}
)";

bool gives_back(const std::string& call) {
  for (const char* name :
       {"cuMemFree", "cuStreamDestroy", "cuEventDestroy", "cuLibraryUnload", "cuDevicePrimaryCtxRelease",
        "cuMemRelease", "cuMemUnmap", "cuMemAddressFree", "cuCtxSetCurrent", "cuCtxSynchronize"}) {
    if (call.starts_with(name)) return true;
  }
  return false;
}

// Fails call `number` of a run and checks the outcome. Returns false if the run has fewer calls.
bool fail_call(uint64_t number, StorageMemory memory, const Outputs& expected) {
  fake().reset();
  fake().fail_call(number);
  Status status = ok_status();
  Outputs outputs;
  {
    GpuRun run(parsed(kSmall));
    run.options.memory = memory;
    run.options.allocator.expandable_segments = number % 2 == 0;
    run.device_options.streams = memory == StorageMemory::kArena ? 3 : 1;
    status = run.run(outputs);
  }
  const std::string failed = fake().failed_call();
  CAPTURE(number, failed);
  if (status.ok()) {
    CHECK((outputs == expected));
  } else {
    CHECK(status.error().code == ErrorCode::kDeviceFailed);
    CHECK_FALSE(status.error().message.empty());
  }
  if (!failed.empty() && !gives_back(failed)) CHECK_FALSE(status.ok());
  CHECK(fake().faults() == "");
  if (!gives_back(failed)) CHECK(fake().held() == "");
  return !failed.empty();
}

TEST_CASE("driver: each call fails once: a clear error, and nothing is held") {
  const Outputs expected = TestRun(parsed(kSmall)).outputs();
  for (const StorageMemory memory : {StorageMemory::kArena, StorageMemory::kAllocator}) {
    uint64_t number = 1;
    while (fail_call(number, memory, expected)) ++number;
    CHECK(number > 100);
  }
  std::mt19937_64 random(49);
  const uint64_t failures = count_given("FXOPT_TEST_FAILURES", 1000);
  for (uint64_t i = 0; i < failures; ++i)
    fail_call(1 + random() % 240, i % 2 == 0 ? StorageMemory::kArena : StorageMemory::kAllocator, expected);
}

// -- the program, as a user runs it

struct Ran {
  int exit = 0;
  std::string text;  // standard output and standard error
};

Ran run_program(const std::string& arguments, const std::string& environment) {
  const std::string command = environment + " " + FXOPT_BINARY + " " + arguments + " 2>&1";
  std::FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  Ran ran;
  char buffer[4096];
  for (size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) ran.text.append(buffer, n);
  const int status = pclose(pipe);
  ran.exit = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

// `gpu`: devices, bytes, version.
std::string with_driver(const std::string& gpu = "1,8589934592,13000") {
  const std::string path = FXOPT_FAKE_DRIVER;
  return "LD_LIBRARY_PATH=" + path.substr(0, path.rfind('/')) + " FXOPT_FAKE_CUDA=" + gpu;
}

const std::string kTwin = std::string(FXOPT_SOURCE_DIR "/testdata/gpt2_flb_twin.pb.zst");
const std::string kPlugin = std::string(" --plugin ") + FXOPT_PLUGIN;

TEST_CASE("run --device cuda: the outputs are those of the CPU, and what the GPU did is told") {
  const std::string output = std::string(FXOPT_SCRATCH) + "/cpu.safetensors";
  REQUIRE(run_program("run " + kTwin + " --fill random --output " + output, "").exit == 0);
  const std::string gpu = "run " + kTwin + " --fill random --device cuda" + kPlugin;
  Ran ran = run_program(gpu + " --expect " + output + " --tolerance bitwise --streams 4 --repeat 2", with_driver());
  CAPTURE(ran.text);
  CHECK(ran.exit == 0);
  CHECK(ran.text.find("on cuda:0 (Fake GPU): exact, sm_90, 4 streams; loss 4.58261061") != std::string::npos);
  CHECK(ran.text.find("by the GPU's events; CPU time of launching: ") != std::string::npos);
  ran = run_program(gpu + " --memory allocator --per-node", with_driver());
  CAPTURE(ran.text);
  CHECK(ran.exit == 0);
  CHECK(ran.text.find("all 536 events as mem predicts them") != std::string::npos);
  CHECK(ran.text.find("one node at a time, 1 run, cuda events") != std::string::npos);
}

TEST_CASE("run --device cuda: the kernels' workspaces are given to mem, and its events are the allocator's") {
  const std::string file = std::string(FXOPT_SCRATCH) + "/columns.fxg";
  REQUIRE(write_file(file, R"(fxg 0
graph @main {
  %x: f32[9000, 70] = placeholder()
  %s: f32[70] = aten.sum.dim_IntList(%x, [0], False)
  %t: f32[70] = aten.tanh.default(%s)
  return (%t,)
}
)")
              .ok());
  const Ran ran =
      run_program("run " + file + " --fill random --device cuda --memory allocator" + kPlugin, with_driver());
  CAPTURE(ran.text);
  CHECK(ran.exit == 0);
  CHECK(ran.text.find("all 8 events as mem predicts them, given the kernels' workspaces") != std::string::npos);
}

TEST_CASE("run --device cuda: what is missing is said, with what to do, and ends with 9") {
  const std::string gpu = "run " + kTwin + " --fill random --device cuda";
  const auto expect = [&](const std::string& arguments, const std::string& environment, const std::string& reason,
                          const std::string& remedy) {
    const Ran ran = run_program(arguments, environment);
    CAPTURE(arguments, environment, ran.text);
    CHECK(ran.exit == 9);
    CHECK(ran.text.find(reason) != std::string::npos);
    CHECK(ran.text.find(remedy) != std::string::npos);
  };
  expect(gpu + kPlugin, "LD_LIBRARY_PATH=", "libcuda.so.1", "fxopt doctor");
  expect(gpu + kPlugin, with_driver("1,8589934592,12040"), "for CUDA 12.4, but this plugin needs a driver for 13.0",
         "newer GPU driver");
  expect(gpu + kPlugin, with_driver("0"), "finds no GPU", "fxopt doctor");
  expect(gpu + ":3" + kPlugin, with_driver(), "GPU 3 does not exist", "fxopt doctor");
  expect(gpu + kPlugin, with_driver("1,400000,13000"), "are free", "sac{policy=full}");
  expect(gpu + " --plugin " + FXOPT_FAKE_DRIVER, with_driver(), "is not a plugin of fxopt", "");
  expect(gpu + " --plugin /nowhere.so", with_driver(), "no plugin for cuda was found: looked for /nowhere.so", "nvcc");
  expect(gpu + " --plugin " + FXOPT_OTHER_PLUGIN, with_driver(), "was built with fxopt 9.9.9", "from one folder");
  expect(gpu + kPlugin + " --debug memory", with_driver(), "--debug memory cannot be used on a GPU", "");
  expect(gpu + kPlugin + " --memory blocks", with_driver(), "--memory blocks cannot be used on a GPU", "");
}

TEST_CASE("doctor: says what is there and what is missing, with and without a GPU") {
  const Ran with = run_program("doctor" + kPlugin, with_driver());
  CAPTURE(with.text);
  CHECK(with.exit == 0);
  CHECK(with.text.starts_with("`fxopt run` can use cpu, cuda:0\n"));
  CHECK(run_program("doctor --device cuda" + kPlugin, with_driver()).exit == 0);
  CHECK(with.text.find("for CUDA 13.0") != std::string::npos);
  CHECK(with.text.find("Fake GPU, sm_90, 132 multiprocessors, 8.00 GiB of 8.00 GiB free") != std::string::npos);
  const Ran empty = run_program("doctor" + kPlugin, with_driver("0"));
  CAPTURE(empty.text);
  CHECK(empty.text.find("GPU       not found: the driver finds no GPU") != std::string::npos);
  const Ran without = run_program("doctor" + kPlugin, "LD_LIBRARY_PATH=");
  CAPTURE(without.text);
  CHECK(without.exit == 0);
  CHECK(without.text.starts_with("`fxopt run` can use cpu; no GPU\n"));
  CHECK(run_program("doctor --device cuda:0" + kPlugin, "LD_LIBRARY_PATH=").exit == 9);
  CHECK(run_program("doctor --device gpu" + kPlugin, "LD_LIBRARY_PATH=").exit == 2);
  CHECK(without.text.find("install NVIDIA's driver for CUDA 13.0 or newer") != std::string::npos);
  CHECK(run_program("doctor --plugin /nowhere.so", "").text.find("`fxopt run` can therefore use only the CPU") !=
        std::string::npos);
}

}  // namespace
}  // namespace fxopt
