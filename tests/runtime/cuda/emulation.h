// The keywords of CUDA for g++, so that the kernels of runtime/cuda run on the host. Every thread
// of a block is a fiber. Fibers wait at barriers and at exchanges of a warp, and every fiber runs
// to its end. Tensor cores, asynchronous copies, cooperative grids, and races between blocks are
// not emulated.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

namespace fxopt::emulation {

// The threads of a block take turns in order, or in an order drawn from `shuffle` for each round. A
// result that depends on this order shows a missing barrier.
struct Launch {
  dim3 grid, block;
  uint64_t shuffle = 0;  // 0 means in order
};

// Runs `thread` for every thread of every block, on the calling thread. If threads wait forever,
// throws a std::runtime_error with the place of each wait. Also throws if an exchange is wrong.
void launch(const Launch& launch, const std::function<void()>& thread);

// These functions return indices and sizes for the running thread. They are valid while launch()
// runs.
const dim3& thread_index();
const dim3& block_index();
const dim3& block_size();
void barrier(const char* where);
// Sends `value` to the other lanes of the warp in `mask`, and returns the values of all 32 lanes.
const uint64_t* exchange(uint32_t mask, uint64_t value, const char* where);
unsigned lane();

template <class T>
uint64_t bits_of(T x) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}
template <class T>
T value_of(uint64_t bits) {
  T x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

}  // namespace fxopt::emulation

#define __global__
#define __device__
#define __launch_bounds__(...)
#define __shared__ static thread_local
#define threadIdx (fxopt::emulation::thread_index())
#define blockIdx (fxopt::emulation::block_index())
#define blockDim (fxopt::emulation::block_size())
#define FX_EMULATION_TEXT_OF(x) #x
#define FX_EMULATION_TEXT(x) FX_EMULATION_TEXT_OF(x)
#define FX_EMULATION_HERE __FILE__ ":" FX_EMULATION_TEXT(__LINE__)
#define __syncthreads() fxopt::emulation::barrier("__syncthreads at " FX_EMULATION_HERE)

template <class T>
T __shfl_down_sync(unsigned mask, T x, unsigned steps) {
  using namespace fxopt::emulation;
  const unsigned from = lane() + steps < 32 ? lane() + steps : lane();
  return value_of<T>(exchange(mask, bits_of(x), "__shfl_down_sync")[from]);
}
template <class T>
T __shfl_sync(unsigned mask, T x, int from) {
  using namespace fxopt::emulation;
  return value_of<T>(exchange(mask, bits_of(x), "__shfl_sync")[from % 32]);
}
