#pragma once

#include <cstdint>

namespace fxopt {

inline constexpr int64_t kKiB = 1024, kMiB = 1024 * kKiB;

}  // namespace fxopt
