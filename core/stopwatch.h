#pragma once

#include <chrono>
#include <utility>

namespace fxopt {

// Measures wall time for reports that people read. No decision depends on this time.
class Stopwatch {
 public:
  // Returns the seconds since the last call, or since construction.
  double lap() {
    const std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(start_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace fxopt
