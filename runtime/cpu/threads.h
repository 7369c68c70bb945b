#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace fxopt {

// Threads that share units of work. Which thread runs a unit depends on time; what a unit computes does not.
class ThreadPool {
 public:
  // `threads`: how many work, the caller's included; at least 1.
  explicit ThreadPool(uint32_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  uint32_t size() const { return size_; }
  // Calls run(first, end) for ranges that cover [0, units), and returns when all have returned. `run` must not throw.
  void run(int64_t units, const std::function<void(int64_t first, int64_t end)>& run);
  // Whether numbers below the smallest normal one are kept on every thread, as they are unless a library switches that off.
  bool keeps_subnormals();

 private:
  struct State;
  uint32_t size_;
  std::unique_ptr<State> state_;
};

}  // namespace fxopt
