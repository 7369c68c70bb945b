#pragma once

#include <utility>

#include "core/result.h"
#include "tests/catch.h"

namespace fxopt {

// Returns the value of the result. If the result is an error, the test fails with its message.
template <class T>
T must(Result<T> result) {
  if (!result.ok()) FAIL(format_error(result.error()));
  return *std::move(result);
}

}  // namespace fxopt
