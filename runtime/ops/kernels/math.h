// Transcendental functions that use only IEEE operations and fma(), because libraries return
// different bits on different machines. Each function computes in the type of its argument. The
// functions for float and for double are accurate to 2 units in the last place.
// tests/runtime/math_test.cpp compares them with functions of a wider type in the C library.
//
// The methods are standard. Exponentials first subtract a multiple of log 2, which is stored in two
// parts. They then sum a Taylor polynomial on [-log 2 / 2, log 2 / 2]. Logarithms first extract the
// exponent. They then sum the series of 2 * atanh((m - 1) / (m + 1)) for m in [sqrt 1/2, sqrt 2].
#pragma once

#include "runtime/ops/kernels/device.h"

namespace fxopt::kernels {
namespace {

template <class T>
struct Float;
template <>
struct Float<float> {
  using Bits = uint32_t;
  using Int = int32_t;
  static constexpr int kMantissa = 23, kBias = 127, kMinExponent = -126;
  static constexpr float kLog2e = 1.44269504088896341f;
  // Log 2 rounded to 16 bits, so multiples are exact.
  static constexpr float kLn2High = 0.693145751953125f;
  static constexpr float kLn2Low = 1.42860682030941723212e-6f;      // log 2 - kLn2High
  static constexpr float kExpMax = 88.7228391f, kExpMin = -104.0f;  // e^x: infinity above, 0 below
  // 1.5 * 2^23. Adding this number rounds to an integer.
  static constexpr float kRound = 12582912.0f;
  // Number of terms that the code adds to 1 + r to compute e^r. The terms are r^2 / 2!, r^3 / 3!,
  // ..., r^8 / 8!.
  static constexpr int kExpTerms = 7;
  // Number of terms that the code adds to s to compute atanh(s). The terms are s^3 / 3, s^5 / 5,
  // ..., s^11 / 11.
  static constexpr int kLogTerms = 5;
};
template <>
struct Float<double> {
  using Bits = uint64_t;
  using Int = int64_t;
  static constexpr int kMantissa = 52, kBias = 1023, kMinExponent = -1022;
  static constexpr double kLog2e = 1.44269504088896340735992468100189214;
  static constexpr double kLn2High = 6.93147180369123816490e-01;  // 33 bits
  static constexpr double kLn2Low = 1.90821492927058770002e-10;
  static constexpr double kExpMax = 709.782712893384, kExpMin = -745.2;
  static constexpr double kRound = 6755399441055744.0;
  static constexpr int kExpTerms = 13;
  static constexpr int kLogTerms = 11;
};

// Inverse factorials for the Taylor series, each rounded once.
template <class T>
struct InverseFactorials {
  T of[16] = {};
  FX_FN constexpr InverseFactorials() {
    double product = 1;
    for (int n = 0; n < 16; ++n) {
      of[n] = static_cast<T>(1 / product);  // n! is exact up to n = 18
      product *= n + 1;
    }
  }
};

// Returns e^r - 1 for r in [-log 2 / 2, log 2 / 2], as r + r^2 * (1/2 + r/6 + ...).
template <class T>
FX_FN T exp_minus_1_reduced(T r) {
  constexpr int kTerms = Float<T>::kExpTerms;
  constexpr InverseFactorials<T> kInverse;
  T sum = kInverse.of[kTerms + 1];
  for (int n = kTerms; n >= 2; --n) sum = fma(sum, r, kInverse.of[n]);
  return fma(multiply(r, r), sum, r);
}

// Returns 2^k. k must be the exponent of a normal number.
template <class T>
FX_FN T power_of_2(typename Float<T>::Int k) {
  using F = Float<T>;
  return bits_to<T>(static_cast<typename F::Bits>(k + F::kBias) << F::kMantissa);
}

// Returns k and sets r such that x = k * log 2 + r.
template <class T>
FX_FN T reduce_by_log_2(T x, T& r) {
  using F = Float<T>;
  const T k = fma(x, F::kLog2e, F::kRound) - F::kRound;
  r = fma(-k, F::kLn2Low, fma(-k, F::kLn2High, x));
  return k;
}

template <class T>
FX_FN T infinity() {
  return power_of_2<T>(Float<T>::kBias) * T(2);
}

// Returns e^x, or x if x is NaN. The function computes a number for every x, and the return
// statement returns x instead if x is NaN. The computation converts a number to an integer. C++
// does not define this conversion for a NaN, so the computation uses larger(kExpMin, x) in place of
// x. If x is NaN, larger() returns kExpMin, because kExpMin < x is false.
template <class T>
FX_FN T exponential(T x) {
  using F = Float<T>;
  using Int = typename F::Int;
  T r;
  const Int k = static_cast<Int>(reduce_by_log_2(smaller(F::kExpMax, larger(F::kExpMin, x)), r));
  const Int half = k / 2;  // two steps, because 2^k may not be a normal number
  const T e = (T(1) + exp_minus_1_reduced(r)) * power_of_2<T>(half) * power_of_2<T>(k - half);
  return is_nan(x) ? x : x < F::kExpMin ? T(0) : x > F::kExpMax ? infinity<T>() : e;
}

// Returns e^x - 1.
template <class T>
FX_FN T exponential_minus_1(T x) {
  using F = Float<T>;
  using Int = typename F::Int;
  T r;
  const Int k = static_cast<Int>(reduce_by_log_2(smaller(T(60), larger(T(-60), x)), r));
  const T scale = power_of_2<T>(k);
  const T e = fma(exp_minus_1_reduced(r), scale, scale - T(1));
  return is_nan(x) ? x : x > T(60) ? exponential(x) : e;
}

// Returns log x of a positive finite number, which may be subnormal.
template <class T>
FX_FN T log_of_positive(T x) {
  using F = Float<T>;
  using Bits = typename F::Bits;
  using Int = typename F::Int;
  const bool is_small = x < power_of_2<T>(F::kMinExponent);
  const T scaled = is_small ? x * power_of_2<T>(F::kMantissa + 1) : x;
  // Splits `scaled` into m * 2^e with m in [sqrt 1/2, sqrt 2]. kHalfRoot has the bits of sqrt(1/2).
  // Adding e << kMantissa to the bits of m multiplies m by 2^e.
  constexpr Bits kHalfRoot = sizeof(T) == 4 ? static_cast<Bits>(0x3f3504f3u) : static_cast<Bits>(0x3fe6a09e667f3bcdull);
  const Bits shifted = bits_to<Bits>(scaled) - kHalfRoot;
  const Int e = static_cast<Int>(shifted) >> F::kMantissa;
  const T m = bits_to<T>((shifted & ((Bits(1) << F::kMantissa) - 1)) + kHalfRoot);
  const T k = static_cast<T>(is_small ? e - (F::kMantissa + 1) : e);
  const T f = m - T(1);
  const T s = f / (T(2) + f);
  const T z = s * s;
  T sum = T(2) / T(2 * F::kLogTerms + 1);
  for (int n = F::kLogTerms - 1; n >= 1; --n) sum = fma(sum, z, T(2) / T(2 * n + 1));
  // The code computes log(m) from f = m - 1, which is a subtraction without rounding error:
  //   s      = f / (2 + f)
  //   log(m) = 2 * atanh(s) = f - s * (f - z * sum)
  //   z      = s^2
  //   sum    = 2/3 + 2/5 * z + 2/7 * z^2 + ...
  const T rest = s * (f - z * sum);
  return k == T(0) ? f - rest : fma(k, F::kLn2High, f - (rest - k * F::kLn2Low));
}

template <class T>
FX_FN T logarithm(T x) {
  const T ordinary = log_of_positive(x > T(0) && x < infinity<T>() ? x : T(1));
  const T not_positive = x == T(0) ? -infinity<T>() : infinity<T>() - infinity<T>();
  return is_nan(x) || x == infinity<T>() ? x : x > T(0) ? ordinary : not_positive;
}

// Returns tanh x. For small |x|, the result is x - x * P(x^2) / Q(x^2), which is Lambert's
// continued fraction, nine levels deep. For larger |x|, the result is 1 - 2 / (e^(2|x|) + 1), with
// the sign of x.
template <class T>
FX_FN T hyperbolic_tangent(T x) {
  constexpr T kScale = T(34459425);
  constexpr T kP1 = T(11486475) / kScale, kP2 = T(810810) / kScale, kP3 = T(12870) / kScale, kP4 = T(44) / kScale;
  constexpr T kQ1 = T(16216200) / kScale, kQ2 = T(945945) / kScale, kQ3 = T(13860) / kScale, kQ4 = T(45) / kScale;
  const T size = x < T(0) ? -x : x;
  const T near = smaller(size, T(0.75));
  const T z = near * near;
  const T p = z * fma(fma(fma(kP4, z, kP3), z, kP2), z, kP1);
  const T q = fma(fma(fma(fma(kQ4, z, kQ3), z, kQ2), z, kQ1), z, T(1));
  const T small = fma(-near, p / q, near);
  const T large = T(1) - T(2) / (exponential(smaller(size, T(30)) * T(2)) + T(1));
  const T t = size < T(0.7) ? small : large;
  return is_nan(x) || x == T(0) ? x : x < T(0) ? -t : t;
}

// Returns log x of a positive finite double as a sum of two doubles: the returned value and `low`.
// The sum is accurate to about 2^-62.
FX_FN double log_in_two(double x, double& low) {
  using F = Float<double>;
  const bool is_small = x < power_of_2<double>(F::kMinExponent);
  const double scaled = is_small ? x * power_of_2<double>(F::kMantissa + 1) : x;
  constexpr uint64_t kHalfRoot = 0x3fe6a09e667f3bcdull;
  const uint64_t shifted = bits_to<uint64_t>(scaled) - kHalfRoot;
  const int64_t e = static_cast<int64_t>(shifted) >> F::kMantissa;
  const double m = bits_to<double>((shifted & ((uint64_t(1) << F::kMantissa) - 1)) + kHalfRoot);
  const double k = static_cast<double>(is_small ? e - (F::kMantissa + 1) : e);
  // For f = m - 1, the quotient f / (2 + f) is computed as the sum of two doubles, `s` and `s_low`.
  // fma() computes the remainder of the division exactly.
  const auto add_exactly = [](double a, double b, double& lost) {
    const double total = a + b;
    const double part = total - a;
    lost += (a - (total - part)) + (b - part);
    return total;
  };
  double d_low = 0;
  const double f = m - 1, d = add_exactly(m, 1, d_low);
  const double s = f / d;
  const double s_low = (fma(-s, d, f) - s * d_low) / d;
  // Let q be the quotient `s` + `s_low`:
  //   2 * atanh(q) = 2 * q + 2/3 * q^3 + q^5 * (2/5 + ...)
  // The term 2/3 * q^3 is also computed as the sum of two doubles, `second` and `second_low`.
  const double z = s * s, z_low = fma(s, s, -z) + 2 * s * s_low;
  const double cube = s * z, cube_low = fma(s, z, -cube) + s * z_low + s_low * z;
  constexpr double kThird = 2.0 / 3.0, kThirdLow = 3.700743415417188e-17;  // their sum is 2/3
  const double second = cube * kThird;
  const double second_low = fma(cube, kThird, -second) + cube * kThirdLow + cube_low * kThird;
  double sum = 2.0 / (2 * F::kLogTerms + 3);
  for (int n = F::kLogTerms; n >= 2; --n) sum = fma(sum, z, 2.0 / (2 * n + 1));
  const double tail = cube * z * sum;
  double lost = tail + second_low + fma(k, F::kLn2Low, 2 * s_low);
  double high = add_exactly(k * F::kLn2High, 2 * s, lost);
  high = add_exactly(high, second, lost);
  const double result = high + lost;
  low = lost - (result - high);
  return result;
}

// Returns |x|^y for a finite nonzero x and a finite y.
FX_FN double power_of_size(double x, double y) {
  double low;
  const double high = log_in_two(x < 0 ? -x : x, low);
  const double product = high * y;
  const double rest = fma(high, y, -product) + low * y;
  const double e = exponential(product);
  return rest == rest && e < infinity<double>() ? fma(e, rest, e) : e;
}

// 2^53; all doubles from 2^53 on are even integers.
constexpr double kAllWhole = 9007199254740992.0;
FX_FN bool is_whole(double y) {
  return y >= kAllWhole || y <= -kAllWhole || static_cast<double>(static_cast<int64_t>(y)) == y;
}
FX_FN bool is_odd(double y) { return y < kAllWhole && y > -kAllWhole && static_cast<int64_t>(y) % 2 != 0; }

// Returns PyTorch's pow, which is C's pow except for the exponents 0.5 and -0.5. These exponents
// use the square root, so -0 and -infinity behave as in sqrt.
FX_FN double power(double x, double y) {
  if (y == 2) return x * x;
  if (y == 3) return x * x * x;
  if (y == 1) return x;
  if (y == -1) return 1 / x;
  if (y == 0.5) return square_root(x);
  if (y == -0.5) return 1 / square_root(x);
  if (y == 0 || x == 1) return 1;
  if (is_nan(x) || is_nan(y)) return x + y;
  const double inf = infinity<double>();
  const bool is_negative = bits_to<int64_t>(x) < 0;
  const double size = is_negative ? -x : x;
  if (y == inf || y == -inf) return size == 1 ? 1 : (size > 1) == (y > 0) ? inf : 0;
  const double sign = is_negative && is_whole(y) && is_odd(y) ? -1 : 1;
  if (size == 0 || size == inf) return (size == inf) == (y > 0) ? sign * inf : sign * 0.0;
  if (is_negative && !is_whole(y)) return inf - inf;
  return sign * power_of_size(x, y);
}

FX_FN float power(float x, float y) {
  if (y == 2) return x * x;
  if (y == 3) return x * x * x;
  return static_cast<float>(power(static_cast<double>(x), static_cast<double>(y)));
}

// Returns the power, computed by squaring. For a negative exponent, returns the integer part of 1 /
// x^|y|.
FX_FN int64_t power(int64_t x, int64_t y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 != 0 ? -1 : 1) : 0;
  int64_t product = 1;
  for (; y > 0; y /= 2, x = multiply(x, x)) {
    if (y % 2 != 0) product = multiply(product, x);
  }
  return product;
}

}  // namespace
}  // namespace fxopt::kernels
