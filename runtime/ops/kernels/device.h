// Building blocks for kernel bodies on every device. They use no libraries, allocate no memory and
// keep no state. g++ and clang compile them for the CPU, nvcc compiles them for GPUs, and g++
// compiles them for the emulation of a GPU. The compiler needs -ffp-contract=off or --fmad=false.
// With these flags, `a * b + c` is rounded twice: after the product, and after the sum. To compute
// `a * b + c` with only one rounding, a body must call `fma(a, b, c)`.
//
// All functions have internal linkage, because objects for several instruction sets are linked into
// one program. With external linkage, the linker could take a function from the object for another
// instruction set. That function would fault on a machine without the instruction set.
#pragma once

#include <stdint.h>

#if defined(__CUDACC__)
#define FX_FN [[maybe_unused]] __device__ inline
#define FX_UNROLL _Pragma("unroll")  // keeps small arrays in registers
#else
#define FX_FN [[maybe_unused]] inline
#define FX_UNROLL
#endif

namespace fxopt::kernels {
namespace {

// Lanes are the workers that share one unit of work. A CPU core is a single lane. On a GPU, the
// threads of a block are the lanes (runtime/cuda/lanes.h). If there are n lanes, lane l works on
// the elements l, l + n, l + 2 n, and so on. Groups of kWarp lanes form warps. The lanes of a warp
// exchange numbers without a barrier.
constexpr int kWarp = 32;
struct OneLane {
  static constexpr bool kIsOne = true;
  static constexpr int kTileLanes = 1;  // lanes that share a tile of elements
  FX_FN static constexpr int lane() { return 0; }
  FX_FN static constexpr int count() { return 1; }
  FX_FN static constexpr OneLane warp() { return {}; }
  FX_FN static constexpr int warp_index() { return 0; }
  FX_FN static constexpr int num_warps() { return 1; }
};

template <class T>
FX_FN T smaller(T a, T b) {
  return b < a ? b : a;
}
template <class T>
FX_FN T larger(T a, T b) {
  return a < b ? b : a;
}

FX_FN float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
FX_FN double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
FX_FN float square_root(float x) { return __builtin_sqrtf(x); }
FX_FN double square_root(double x) { return __builtin_sqrt(x); }

template <class T>
constexpr bool kIsInteger = T(1) / T(2) == T(0);

template <class To, class From>
FX_FN To bits_to(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}

template <class T>
FX_FN bool is_nan(T x) {
  return x != x;
}

// Integers wrap around, as in PyTorch. The functions compute with unsigned integers, because signed
// overflow is undefined in C++.
FX_FN int64_t add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
FX_FN int64_t subtract(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
FX_FN int64_t multiply(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
FX_FN float add(float a, float b) { return a + b; }
FX_FN float subtract(float a, float b) { return a - b; }
FX_FN float multiply(float a, float b) { return a * b; }
FX_FN double add(double a, double b) { return a + b; }
FX_FN double subtract(double a, double b) { return a - b; }
FX_FN double multiply(double a, double b) { return a * b; }
// Returns a * b + c. A floating-point result is rounded only once. An integer result wraps around.
FX_FN int64_t multiply_add(int64_t a, int64_t b, int64_t c) { return add(multiply(a, b), c); }
FX_FN float multiply_add(float a, float b, float c) { return fma(a, b, c); }
FX_FN double multiply_add(double a, double b, double c) { return fma(a, b, c); }

}  // namespace
}  // namespace fxopt::kernels
