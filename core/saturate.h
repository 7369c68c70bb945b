#pragma once

#include <cstdint>
#include <limits>

namespace fxopt {

// Returns a + b for amounts of 0 or more. If the sum overflows, returns the largest int64_t. O(1).
constexpr int64_t saturating_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

// A signed integer of 128 bits. Sums and differences of up to 2^63 amounts do not overflow, if each
// amount is from 0 to 2^63 - 1.
__extension__ using WideSum = __int128;
constexpr int64_t saturate(WideSum sum) {
  return sum > std::numeric_limits<int64_t>::max() ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(sum);
}

}  // namespace fxopt
