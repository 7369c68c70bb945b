#pragma once

#include <cstdint>
#include <limits>

namespace fxopt {

// Returns a + b for amounts of 0 or more. If the sum overflows, returns the largest int64_t. O(1).
constexpr int64_t saturating_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

// A type wide enough for exact sums and differences of up to 2^63 amounts of 63 bits.
__extension__ using WideSum = __int128;
constexpr int64_t saturate(WideSum sum) {
  return sum > std::numeric_limits<int64_t>::max() ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(sum);
}

}  // namespace fxopt
