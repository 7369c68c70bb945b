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

// When two values count as equal. A NaN equals a NaN under all kinds but kBitwise, which compares
// bits.
struct Tolerance {
  enum class Kind : uint8_t {
    kBitwise,
    kClose,  // |a - b| <= absolute + relative |b|, b the expected one
    kUlp,    // at most this many numbers of the dtype between them
    kAuto    // by the distance of both from the step in float64, see compare()
  };
  Kind kind = Kind::kAuto;
  double relative = 0, absolute = 0;
  int64_t ulps = 0;
};

// "bitwise", "auto", "1e-5,1e-8", "ulp:2". Errors: kBadOptionValue.
Result<Tolerance> parse_tolerance(std::string_view text);

// One output compared with the expected one.
struct Comparison {
  size_t elements = 0;
  size_t differing = 0;   // elements with different bits
  size_t over = 0;        // beyond the tolerance
  size_t not_finite = 0;  // ours, while the expected one is finite
  size_t worst = 0;       // index of the worst element, row-major
  double ours = 0, expected = 0;
  std::optional<double> reference;  // float64 value of the worst element
  bool passes = true;
};

// Compares elements of one dtype, row-major without padding. `reference` is the same output of the
// step in float64, needed for kAuto. Under kAuto an element passes within this distance of float64:
// 4 times the largest distance of ours in this output, plus one unit in the last place of the
// largest element. Integers and bools must be equal under kAuto. O(elements).
Comparison compare(DType dtype, std::span<const std::byte> ours, std::span<const std::byte> expected,
                   std::span<const double> reference, const Tolerance& tolerance);

// Returns the elements as float64. O(elements).
std::vector<double> as_doubles(DType dtype, std::span<const std::byte> bytes);

// A compared value: an output of the plan, or the results of a step.
struct Compared {
  uint32_t output = FX_NONE, step = FX_NONE;  // one of these is set
  bool differs = false;
};

// Returns the steps in which one mistake could explain all differences: every differing value
// depends on each such step. Steps on which the fewest agreeing values depend come first (a mistake
// may be masked on its way to a value). Among equals, later steps come first. If the results of a
// step and of all steps before it were compared, that step is first. O(words * compared / 64 +
// steps log steps).
std::vector<uint32_t> suspects(const FxPlan& plan, const std::vector<Compared>& compared);

}  // namespace fxopt
