// Transcendental functions of the kernels against those of the C library in a wider type.

#include "runtime/ops/kernels/math.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "tests/catch.h"

namespace fxopt {
namespace {

// |error| in units of the last place of the exact result.
template <class T>
double ulps(T ours, long double exact) {
  const auto rounded = static_cast<T>(exact);
  if (std::isnan(exact)) return std::isnan(ours) ? 0 : 1e9;
  if (std::isinf(rounded) || std::isinf(ours)) return ours == rounded ? 0 : 1e9;
  const int digits = std::numeric_limits<T>::digits, lowest = std::numeric_limits<T>::min_exponent - 1;
  const int exponent = exact == 0 ? lowest : std::max(std::ilogb(exact), lowest);
  return static_cast<double>(std::fabs(static_cast<long double>(ours) - exact) /
                             std::ldexp(1.0L, exponent - digits + 1));
}

template <class T, class Ours, class Exact>
double worst(const Ours& ours, const Exact& exact, double low, double high, int count) {
  std::mt19937_64 dice(1);
  std::uniform_real_distribution<double> uniform(low, high);
  double most = 0;
  for (int i = 0; i < count; ++i) {
    const auto x = static_cast<T>(uniform(dice));
    most = std::max(most, ulps<T>(ours(x), exact(static_cast<long double>(x))));
  }
  return most;
}

// Draws random bits, so that all magnitudes are equally likely.
template <class T, class Bits, class Ours, class Exact>
double worst_of_bits(const Ours& ours, const Exact& exact, int count) {
  std::mt19937_64 dice(2);
  double most = 0;
  for (int i = 0; i < count; ++i) {
    const T x = kernels::bits_to<T>(static_cast<Bits>(dice()));
    if (!std::isfinite(x)) continue;
    most = std::max(most, ulps<T>(ours(x), exact(static_cast<long double>(x))));
  }
  return most;
}

template <class T, class Bits>
void check_functions(int count) {
  const auto exp = [](T x) { return kernels::exponential(x); };
  const auto expm1 = [](T x) { return kernels::exponential_minus_1(x); };
  const auto log = [](T x) { return kernels::logarithm(x); };
  const auto tanh = [](T x) { return kernels::hyperbolic_tangent(x); };
  const auto exact_exp = [](long double x) { return std::exp(x); };
  const auto exact_expm1 = [](long double x) { return std::expm1(x); };
  const auto exact_log = [](long double x) { return std::log(x); };
  const auto exact_tanh = [](long double x) { return std::tanh(x); };
  const double limit = sizeof(T) == 4 ? 110 : 760;
  CHECK(worst<T>(exp, exact_exp, -limit, limit, count) <= 2);
  CHECK(worst_of_bits<T, Bits>(exp, exact_exp, count) <= 2);
  CHECK(worst<T>(expm1, exact_expm1, -40, 40, count) <= 2);
  CHECK(worst_of_bits<T, Bits>(expm1, exact_expm1, count) <= 2);
  CHECK(worst<T>(log, exact_log, 0.5, 2, count) <= 2);
  CHECK(worst_of_bits<T, Bits>(log, exact_log, count) <= 2);
  CHECK(worst<T>(tanh, exact_tanh, -3, 3, count) <= 2);
  CHECK(worst_of_bits<T, Bits>(tanh, exact_tanh, count) <= 2);
}

TEST_CASE("math: exp, expm1, log and tanh are within 2 units in the last place") {
  check_functions<float, uint32_t>(200000);
  if (std::numeric_limits<long double>::digits < 64) {
    WARN("skipped for double: long double is no wider here");
    return;
  }
  check_functions<double, uint64_t>(200000);
}

TEST_CASE("math: pow is within 2 units, and is PyTorch's at the borders") {
  std::mt19937_64 dice(3);
  std::uniform_real_distribution<double> size(-20, 20), exponent(-12, 12);
  double most = 0, most_float = 0;
  for (int i = 0; i < 200000; ++i) {
    const double x = std::exp2(size(dice)), y = exponent(dice);
    if (std::numeric_limits<long double>::digits >= 64)
      most = std::max(
          most, ulps<double>(kernels::power(x, y), std::pow(static_cast<long double>(x), static_cast<long double>(y))));
    const auto a = static_cast<float>(x), b = static_cast<float>(y);
    most_float = std::max(most_float,
                          ulps<float>(kernels::power(a, b), std::pow(static_cast<double>(a), static_cast<double>(b))));
  }
  CHECK(most <= 2);
  CHECK(most_float <= 1);
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const double x : {0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, inf, -inf, nan, 5e-324, 1.7e308}) {
    for (const double y :
         {0.0, -0.0, 1.0, -1.0, 2.0, 3.0, -3.0, 7.0, 2.5, -2.5, 1e300, -1e300, 9007199254740993.0, inf, -inf, nan}) {
      const double ours = kernels::power(x, y), theirs = std::pow(x, y);
      CAPTURE(x, y, ours, theirs);
      const bool is_near = std::fabs(ours - theirs) <= 2 * std::numeric_limits<double>::epsilon() * std::fabs(theirs);
      CHECK((std::isnan(ours) ? std::isnan(theirs)
                              : (ours == theirs || is_near) && std::signbit(ours) == std::signbit(theirs)));
    }
  }
  CHECK(kernels::power(int64_t{3}, int64_t{4}) == 81);
  CHECK(kernels::power(int64_t{-2}, int64_t{63}) == INT64_MIN);
  CHECK(kernels::power(int64_t{2}, int64_t{64}) == 0);  // wraps
  CHECK(kernels::power(int64_t{-1}, int64_t{-3}) == -1);
}

}  // namespace
}  // namespace fxopt
