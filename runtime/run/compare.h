#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "runtime/abi/plan.h"
#include "runtime/ops/call.h"

namespace fxopt {

// The condition under which two values are considered equal. A NaN is equal to a NaN under every
// kind except kBitwise, which compares bits.
struct Tolerance {
  enum class Kind : uint8_t {
    kBitwise,
    kClose,  // the condition is |ours - expected| <= absolute + relative * |expected|
    // The condition is |ours - expected| <= ulps * u. For integers, u is 1. For floating-point
    // dtypes, let x be the smaller number of |ours| and |expected|. Then u is the distance between
    // two neighbouring numbers of the dtype, measured at x.
    kUlp,
    kAuto  // compares with the step in float64, see compare()
  };
  Kind kind = Kind::kAuto;
  double relative = 0, absolute = 0;
  int64_t ulps = 0;
};

// Parses a tolerance, such as "bitwise", "auto", "1e-5,1e-8" or "ulp:2". Fails with kBadOptionValue
// for any other text.
Result<Tolerance> parse_tolerance(std::string_view text);

// The comparison of one output with the expected output.
struct Comparison {
  size_t elements = 0;
  size_t differing = 0;  // elements with different bits
  size_t over = 0;       // elements beyond the tolerance
  // The number of fxopt's elements that are not finite although the expected elements are finite.
  size_t not_finite = 0;
  size_t worst = 0;  // row-major index of the worst element
  double ours = 0, expected = 0;
  std::optional<double> reference;  // float64 value of the worst element
  bool passes = true;
};

// Compares elements of one dtype, in row-major order without padding. `ours` is fxopt's output, and
// `reference` is the output that the training step computes in float64. O(elements).
//
// kAuto requires `reference`. kAuto checks whether the errors of `expected` are similar to the
// errors of `ours`. An element passes if
//   |expected - reference| <= 4 * max |ours - reference| + u
// The maximum is taken over all elements for which both `ours` and `reference` are finite. u is the
// distance between two neighbouring numbers of `dtype`, measured at the largest finite |reference|
// in the output. If `ours` or `expected` is infinite or NaN, `ours` and `expected` must be equal.
// Two NaNs are equal here. Integers and bools must be equal under kAuto.
Comparison compare(DType dtype, std::span<const std::byte> ours, std::span<const std::byte> expected,
                   std::span<const double> reference, const Tolerance& tolerance);

// Returns the elements as float64. O(elements).
std::vector<double> as_doubles(DType dtype, std::span<const std::byte> bytes);

// A compared value, which is an output of the plan or the results of a step.
struct Compared {
  uint32_t output = FX_NONE, step = FX_NONE;  // either `output` or `step` is set
  bool differs = false;
};

// Returns the plan's steps (calls of operators) in which a single mistake could explain all
// differences. Every differing value depends on each of these steps. The list is sorted by the
// number of agreeing values that depend on a step, from the fewest. Agreeing values do not exclude
// a step, because later computations may mask a mistake. Steps with the same number of dependent
// agreeing values are listed from last to first.
//
// Let `d` be the first step whose compared results differ. The list begins with `d` if both of
// these conditions hold:
// - Every differing value depends on `d`.
// - The results of all steps before `d` were compared.
//
// O(words * compared / 64 + steps log steps). Here, `words` is the number of words in the steps'
// arguments and results.
std::vector<uint32_t> suspects(const FxPlan& plan, const std::vector<Compared>& compared);

}  // namespace fxopt
