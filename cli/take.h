#pragma once

#include <utility>

#include "core/result.h"

namespace fxopt {

// Moves the value of `result` into `target`. Fails with the error of `result`.
template <class Target, class Value>
Status take(Target& target, Result<Value> result) {
  if (!result.ok()) return std::move(result).error();
  target = *std::move(result);
  return ok_status();
}

}  // namespace fxopt
