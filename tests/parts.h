#pragma once

#include "tests/catch.h"

// Splits a long test into four cases that ctest may run in parallel. Each case calls
// `function(part, kTestParts)`, with `part` from 0.
#define FXOPT_TEST_IN_PARTS(function, name, tags)               \
  static_assert(kTestParts == 4);                               \
  TEST_CASE(name ", part 1", tags) { function(0, kTestParts); } \
  TEST_CASE(name ", part 2", tags) { function(1, kTestParts); } \
  TEST_CASE(name ", part 3", tags) { function(2, kTestParts); } \
  TEST_CASE(name ", part 4", tags) { function(3, kTestParts); } \
  static_assert(true)

namespace fxopt {

inline constexpr uint64_t kTestParts = 4;

}  // namespace fxopt
