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

// When two values are taken for equal. A NaN equals a NaN under all but kBitwise, which compares bits.
struct Tolerance {
  enum class Kind : uint8_t {
    kBitwise,
    kClose,  // |a - b| <= absolute + relative |b|, b the expected one
    kUlp,    // at most so many numbers of the dtype lie between them
    kAuto    // by the distance of both from the step in float64, see compare()
  };
  Kind kind = Kind::kAuto;
  double relative = 0, absolute = 0;
  int64_t ulps = 0;
};

// "bitwise", "auto", "1e-5,1e-8", "ulp:2". Errors: kBadOptionValue.
Result<Tolerance> parse_tolerance(std::string_view text);

// One output beside the expected one.
struct Comparison {
  size_t elements = 0;
  size_t differing = 0;   // other bits
  size_t over = 0;        // beyond the tolerance
  size_t not_finite = 0;  // ours, where the expected one is finite
  size_t worst = 0;       // element, row-major
  double ours = 0, expected = 0;
  std::optional<double> reference;  // float64 of the worst
  bool passes = true;
};

// Compares elements of one dtype, row-major without padding. `reference`: the same output of the step in float64; needed for kAuto,
// under which an element passes if the expected value is no further from float64 than 4 times the largest distance of ours in this
// output, plus one unit in the last place of the largest element. Integers and bools must be equal under kAuto. O(elements).
Comparison compare(DType dtype, std::span<const std::byte> ours, std::span<const std::byte> expected,
                   std::span<const double> reference, const Tolerance& tolerance);

// Elements as float64. O(elements).
std::vector<double> as_doubles(DType dtype, std::span<const std::byte> bytes);

// The steps that outputs which differ depend on, and no output that agrees: where a mistake can be that explains both, first those
// whose own operands agree with nothing wrong before them. `differs`: by output of the plan; `is_compared`: likewise. O(words).
std::vector<uint32_t> suspects(const FxPlan& plan, const std::vector<bool>& differs,
                               const std::vector<bool>& is_compared);

}  // namespace fxopt
