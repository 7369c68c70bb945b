#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace fxopt {

// Threads that share units of work. Timing decides which thread runs a unit, but not the unit's
// result.
class ThreadPool {
 public:
  // `threads`: the number of working threads, including the caller's; at least 1.
  explicit ThreadPool(uint32_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  uint32_t size() const { return size_; }
  // Calls run(first, end) for ranges that cover [0, units), and returns when all calls have
  // returned. `run` must not throw.
  void run(int64_t units, const std::function<void(int64_t first, int64_t end)>& run);
  // Returns true if every thread keeps subnormal numbers. Threads do so unless a library switches
  // it off.
  bool keeps_subnormals();

 private:
  struct State;
  uint32_t size_;
  std::unique_ptr<State> state_;
};

}  // namespace fxopt
