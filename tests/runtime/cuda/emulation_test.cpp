// The emulated GPU: the faults it finds, and kernels whose blocks have several warps.

#include "tests/runtime/cuda/emulation.h"

#include <stdexcept>
#include <vector>

#include "tests/catch.h"
#include "tests/runtime/cuda/emulated_kernels.h"
#include "tests/runtime/test_run.h"

namespace fxopt {
namespace {

std::string error_of(const emulation::Launch& launch, const std::function<void()>& thread) {
  try {
    emulation::launch(launch, thread);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("emulation: every thread of every block runs to its end") {
  std::vector<int> runs(3 * 70, 0);
  emulation::launch({{3}, {70}}, [&] {
    __syncthreads();
    ++runs[blockIdx.x * blockDim.x + threadIdx.x];
  });
  CHECK(runs == std::vector<int>(3 * 70, 1));
}

TEST_CASE("emulation: barriers and exchanges that do not meet are named") {
  const std::string barrier = error_of({{1}, {64}}, [] {
    if (threadIdx.x != 5) __syncthreads();
    if (threadIdx.x == 5) __shfl_sync(1u << 5 | 1u << 6, 1, 5);
  });
  CHECK(barrier.find("thread 5 in __shfl_sync") != std::string::npos);
  CHECK(barrier.find("thread 0 and 62 more in __syncthreads at") != std::string::npos);
  const std::string mask = error_of({{1}, {32}}, [] { __shfl_sync(0xfffffffeu, 1, 1); });
  CHECK(mask.find("not in its own mask") != std::string::npos);
}

TEST_CASE("emulation: an order that is drawn shows a barrier too few") {
  const auto last_seen = [](uint64_t order) {
    static thread_local int shared = 0;
    int seen = 0;
    shared = 0;
    emulation::launch({{1}, {64}, order}, [&] {
      if (threadIdx.x == 0) shared = 1;
      if (threadIdx.x == 63) seen = shared;  // the barrier before this read is missing
    });
    return seen;
  };
  CHECK(last_seen(0) == 1);
  bool differs = false;
  for (uint64_t order = 1; order < 20; ++order) differs = differs || last_seen(order) == 0;
  CHECK(differs);
}

// Rows with more chunks than a block has warps, and columns with more rows than a chunk.
const char* const kLong = R"(graph @long {
  %x: f32[3, 70000] = placeholder()
  %w: f32[70000] = placeholder()
  %y: f32[9000, 70] = placeholder()
  %norm: (f32[3, 70000], f32[3, 1], f32[3, 1]) = aten.native_layer_norm.default(%x, [70000], %w, %w, 1e-05)
  %n: f32[3, 70000] = operator.getitem(%norm, 0)
  %mean: f32[3, 1] = operator.getitem(%norm, 1)
  %rstd: f32[3, 1] = operator.getitem(%norm, 2)
  %soft: f32[3, 70000] = aten._log_softmax.default(%n, 1, False)
  %all: f32[] = aten.sum.dim_IntList(%soft, [0, 1], False)
  %rows: f32[3] = aten.sum.dim_IntList(%n, [1], False)
  %columns: f32[70] = aten.sum.dim_IntList(%y, [0], False)
  %most: f32[70] = aten.amax.default(%y, [0], False)
  return (%n, %mean, %rstd, %soft, %all, %rows, %columns, %most)
}
)";

TEST_CASE("emulation: blocks of many warps compute the bits of one core, in any order") {
  TestRun cpu(parsed(kLong));
  const auto expected = cpu.outputs();
  CHECK(expected.size() == 8);
  for (uint64_t order = 0; order < 4; ++order) {
    set_emulated_order(order);
    TestRun emulated(parsed(kLong));
    emulated.options().kernels = &emulated_table();
    CHECK(emulated.outputs() == expected);
  }
}

}  // namespace
}  // namespace fxopt
