// Converts elements between their type in memory and the type in which a kernel computes. Bodies
// compute in float for float16, bfloat16 and float32, in double for float64, and in int64_t for
// integers and bools. Conversions are those of PyTorch (c10/util/TypeCast.h, BFloat16.h, Half.h).
// Conversions round to the nearest number, with ties to even. A NaN stays a NaN. A number becomes
// the bool true if it is not 0. Integers wrap around. A real beyond the range of int64 becomes the
// smallest int64. PyTorch leaves this case undefined.
#pragma once

#include "runtime/abi/kernel.h"
#include "runtime/ops/kernels/device.h"

namespace fxopt::kernels {
namespace {

// The integer codes of dtypes in the graph file, which are those of DType.
enum ElementType : uint8_t {
  kU8 = 1,
  kI8 = 2,
  kI16 = 3,
  kI32 = 4,
  kI64 = 5,
  kF16 = 6,
  kF32 = 7,
  kF64 = 8,
  kBool = 12,
  kBF16 = 13,
};

FX_FN float bf16_to_float(uint16_t bits) { return bits_to<float>(static_cast<uint32_t>(bits) << 16); }

FX_FN uint16_t float_to_bf16(float x) {
  const uint32_t bits = bits_to<uint32_t>(x);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return static_cast<uint16_t>(is_nan(x) ? 0x7fc0u : rounded);
}

FX_FN float f16_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t rest = static_cast<uint32_t>(half & 0x7fffu) << 13;
  // The exponents of float16 and float32 differ by 112. Numbers below 2^-14 are corrected by one
  // subtraction of 2^-14. Infinities and NaNs have the largest exponent.
  const uint32_t normal = rest + (112u << 23);
  const float small = bits_to<float>(rest + (113u << 23)) - bits_to<float>(113u << 23);
  const uint32_t exponent = half & 0x7c00u;
  const uint32_t special = rest | 0x7f800000u;
  const uint32_t bits = exponent == 0 ? bits_to<uint32_t>(small) : exponent == 0x7c00u ? special : normal;
  return bits_to<float>(sign | bits);
}

FX_FN uint16_t float_to_f16(float x) {
  const uint32_t bits = bits_to<uint32_t>(x);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t rest = bits & 0x7fffffffu;
  uint32_t half;
  if (rest >= 0x47800000u) {  // 65536 and above, infinity, NaN
    half = rest > 0x7f800000u ? 0x7e00u : 0x7c00u;
  } else if (rest < 0x38800000u) {
    // Below 2^-14, float16 numbers are multiples of 2^-24. From 0.5 to 1, float32 numbers are also
    // multiples of 2^-24. Adding 0.5 to |x| in float32 therefore rounds |x| to a float16 number.
    half = bits_to<uint32_t>(bits_to<float>(rest) + 0.5f) - 0x3f000000u;
  } else {
    half = (rest - (112u << 23) + 0xfffu + ((rest >> 13) & 1u)) >> 13;
  }
  return static_cast<uint16_t>(rest > 0x7f800000u ? half : sign | half);
}

// The bits of a computed NaN depend on the processor, the order of operands, and constant folding.
// The store functions therefore write one fixed NaN.
FX_FN float canonical(float x) { return is_nan(x) ? bits_to<float>(uint32_t{0x7fc00000u}) : x; }
FX_FN double canonical(double x) { return is_nan(x) ? bits_to<double>(uint64_t{0x7ff8000000000000u}) : x; }

template <class To>
struct Convert {
  template <class From>
  FX_FN static To from(From x) {
    return static_cast<To>(x);
  }
};
template <>
struct Convert<int64_t> {
  FX_FN static int64_t from(int64_t x) { return x; }
  FX_FN static int64_t from(double x) {
    return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? static_cast<int64_t>(x) : INT64_MIN;
  }
  FX_FN static int64_t from(float x) {
    return x >= -9223372036854775808.0f && x < 9223372036854775808.0f ? static_cast<int64_t>(x) : INT64_MIN;
  }
};

template <class T>
FX_FN T number_as(const FxNumber& number) {
  return number.kind == FX_NUMBER_REAL ? Convert<T>::from(number.real) : Convert<T>::from(number.integer);
}

// Loads n elements. Each stored type has its own loop, so that compilers can vectorize the loop.
template <class T>
FX_FN void load_run(uint8_t type, const void* data, int64_t first, int64_t stride, int64_t n, T* out) {
#define FX_LOAD(Stored, expression)                                \
  {                                                                \
    const Stored* from = static_cast<const Stored*>(data) + first; \
    if (stride == 1) {                                             \
      for (int64_t i = 0; i < n; ++i) {                            \
        const Stored x = from[i];                                  \
        out[i] = Convert<T>::from(expression);                     \
      }                                                            \
    } else {                                                       \
      for (int64_t i = 0; i < n; ++i) {                            \
        const Stored x = from[i * stride];                         \
        out[i] = Convert<T>::from(expression);                     \
      }                                                            \
    }                                                              \
    return;                                                        \
  }
  switch (type) {
    case kU8:
      FX_LOAD(uint8_t, static_cast<int64_t>(x))
    case kI8:
      FX_LOAD(int8_t, static_cast<int64_t>(x))
    case kI16:
      FX_LOAD(int16_t, static_cast<int64_t>(x))
    case kI32:
      FX_LOAD(int32_t, static_cast<int64_t>(x))
    case kI64:
      FX_LOAD(int64_t, x)
    case kF16:
      FX_LOAD(uint16_t, f16_to_float(x))
    case kF32:
      FX_LOAD(float, x)
    case kF64:
      FX_LOAD(double, x)
    case kBool:
      FX_LOAD(uint8_t, static_cast<int64_t>(x != 0))
    case kBF16:
      FX_LOAD(uint16_t, bf16_to_float(x))
    default:
      return;
  }
#undef FX_LOAD
}

template <class T>
FX_FN void store_run(uint8_t type, void* data, int64_t first, int64_t stride, int64_t n, const T* in) {
#define FX_STORE(Stored, expression)                      \
  {                                                       \
    Stored* to = static_cast<Stored*>(data) + first;      \
    if (stride == 1) {                                    \
      for (int64_t i = 0; i < n; ++i) {                   \
        const T x = in[i];                                \
        to[i] = static_cast<Stored>(expression);          \
      }                                                   \
    } else {                                              \
      for (int64_t i = 0; i < n; ++i) {                   \
        const T x = in[i];                                \
        to[i * stride] = static_cast<Stored>(expression); \
      }                                                   \
    }                                                     \
    return;                                               \
  }
  switch (type) {
    case kU8:
      FX_STORE(uint8_t, Convert<int64_t>::from(x))
    case kI8:
      FX_STORE(int8_t, Convert<int64_t>::from(x))
    case kI16:
      FX_STORE(int16_t, Convert<int64_t>::from(x))
    case kI32:
      FX_STORE(int32_t, Convert<int64_t>::from(x))
    case kI64:
      FX_STORE(int64_t, Convert<int64_t>::from(x))
    case kF16:
      FX_STORE(uint16_t, float_to_f16(Convert<float>::from(x)))
    case kF32:
      FX_STORE(float, canonical(Convert<float>::from(x)))
    case kF64:
      FX_STORE(double, canonical(Convert<double>::from(x)))
    case kBool:
      FX_STORE(uint8_t, x != T(0))
    case kBF16:
      FX_STORE(uint16_t, float_to_bf16(Convert<float>::from(x)))
    default:
      return;
  }
#undef FX_STORE
}

template <class T>
FX_FN T load_one(const FxView& view, int64_t offset) {
  T x = T(0);
  load_run(view.dtype, view.data, offset, 1, 1, &x);
  return x;
}

template <class T>
FX_FN void store_one(const FxView& view, int64_t offset, T x) {
  store_run(view.dtype, view.data, offset, 1, 1, &x);
}

}  // namespace
}  // namespace fxopt::kernels
