#include "runtime/cpu/threads.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <limits>
#include <mutex>

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

namespace fxopt {
namespace {

// Computes with a subnormal number, because reading the processor setting needs code for each
// processor.
bool keeps_subnormals_here() {
  volatile float smallest_normal = std::numeric_limits<float>::min();
  volatile float half = smallest_normal * 0.5f;
  volatile float back = half * 2.0f;
  return half != 0 && back == smallest_normal;
}

}  // namespace

struct ThreadPool::State {
  explicit State(uint32_t helpers) : pool(helpers) {}
  boost::asio::thread_pool pool;
};

ThreadPool::ThreadPool(uint32_t threads) : size_(std::max(threads, 1u)) {
  if (size_ > 1) state_ = std::make_unique<State>(size_ - 1);
}

ThreadPool::~ThreadPool() {
  if (state_ != nullptr) state_->pool.join();
}

void ThreadPool::run(int64_t units, const std::function<void(int64_t, int64_t)>& run) {
  if (units <= 0) return;
  // A few ranges for each thread, because some units take longer.
  const int64_t range = std::max<int64_t>(1, units / (int64_t{size_} * 4));
  const int64_t ranges = (units + range - 1) / range;
  const auto helpers = static_cast<uint32_t>(std::min<int64_t>(size_ - 1, ranges - 1));
  if (helpers == 0) return run(0, units);
  std::atomic<int64_t> next = 0;
  const auto work = [&] {
    for (int64_t i = next.fetch_add(1); i < ranges; i = next.fetch_add(1))
      run(i * range, std::min(units, (i + 1) * range));
  };
  std::mutex mutex;
  std::condition_variable ended;
  uint32_t running = helpers;
  for (uint32_t i = 0; i < helpers; ++i) {
    boost::asio::post(state_->pool, [&] {
      work();
      const std::lock_guard<std::mutex> lock(mutex);
      if (--running == 0) ended.notify_one();
    });
  }
  work();
  std::unique_lock<std::mutex> lock(mutex);
  ended.wait(lock, [&] { return running == 0; });
}

bool ThreadPool::keeps_subnormals() {
  bool all = keeps_subnormals_here();
  if (state_ == nullptr) return all;
  // Posts one task for each helper thread. Each task waits for the other tasks, so every thread
  // runs one task.
  std::mutex mutex;
  std::condition_variable arrived, ended;
  uint32_t missing = size_ - 1, running = size_ - 1;
  for (uint32_t i = 0; i + 1 < size_; ++i) {
    boost::asio::post(state_->pool, [&] {
      std::unique_lock<std::mutex> lock(mutex);
      all = all && keeps_subnormals_here();
      if (--missing == 0) arrived.notify_all();
      arrived.wait(lock, [&] { return missing == 0; });
      if (--running == 0) ended.notify_one();
    });
  }
  std::unique_lock<std::mutex> lock(mutex);
  ended.wait(lock, [&] { return running == 0; });
  return all;
}

}  // namespace fxopt
