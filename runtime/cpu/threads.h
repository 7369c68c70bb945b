#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace fxopt {

// A pool of threads that share units of work. Timing decides which thread runs a unit, but the
// result of the unit does not depend on the thread.
class ThreadPool {
 public:
  // `threads` is the number of working threads, including the caller's thread. The number must be
  // at least 1.
  explicit ThreadPool(uint32_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  uint32_t size() const { return size_; }
  // Calls run(first, end) for ranges that cover [0, units), and returns when all calls have
  // returned. `run` must not throw.
  void run(int64_t units, const std::function<void(int64_t first, int64_t end)>& run);
  // Returns true if every thread keeps subnormal numbers. Threads keep these numbers unless a
  // library changes the processor setting.
  bool keeps_subnormals();

 private:
  struct State;
  uint32_t size_;
  std::unique_ptr<State> state_;
};

}  // namespace fxopt
