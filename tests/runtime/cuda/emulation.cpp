#include "tests/runtime/cuda/emulation.h"

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <sys/mman.h>
#include <vector>

#include <boost/context/fiber.hpp>
#include <boost/context/preallocated.hpp>
#include <sanitizer/asan_interface.h>

namespace fxopt::emulation {
namespace {

namespace context = boost::context;

constexpr size_t kStack = 64 << 10;

enum class State : uint8_t { kReady, kAtBarrier, kInExchange, kDone };

struct Thread {
  context::fiber fiber;
  dim3 index;
  State state = State::kReady;
  const char* where = "";
};

struct Warp {
  uint64_t given[32], taken[2][32];
  uint32_t arrived = 0, mask = 0;
  uint32_t turn = 0;  // which table of results: a lane may read one while others fill the next
};

// Stacks of the threads of a block, in memory that the system provides on first use.
class Stacks {
 public:
  Stacks() = default;
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;
  ~Stacks() { give_back(); }
  void grow(size_t count) {
    if (count <= count_) return;
    give_back();
    void* memory =
        mmap(nullptr, count * kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no memory for the stacks of an emulated block");
    base_ = static_cast<char*>(memory);
    count_ = count;
  }
  context::stack_context of(size_t i) const {
    context::stack_context stack;
    stack.size = kStack;
    stack.sp = base_ + (i + 1) * kStack;
    return stack;
  }

 private:
  void give_back() {
    if (base_ == nullptr) return;
    // The last frame of a fiber does not return, so its guards would outlive the memory.
    ASAN_UNPOISON_MEMORY_REGION(base_, count_ * kStack);
    munmap(base_, count_ * kStack);
  }
  char* base_ = nullptr;
  size_t count_ = 0;
};

// Preallocated fibers free nothing.
struct NoAllocator {
  void deallocate(context::stack_context&) {}
};

class Block {
 public:
  Block(const dim3& index, const dim3& size, const std::function<void()>& body, Stacks& stacks);
  void run(std::mt19937_64* order);
  void wait(State state, const char* where);
  void barrier(const char* where);
  const uint64_t* exchange(uint32_t mask, uint64_t value, const char* where);

  dim3 index, size;
  unsigned current = 0;  // the thread that runs
  const Thread& thread() const { return threads_[current]; }

 private:
  void release_barrier();
  bool turn_of(unsigned thread);
  void fail(std::string message);
  void say_who_waits();

  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  unsigned alive_ = 0, at_barrier_ = 0;
  context::fiber scheduler_;
  std::string error_;
};

thread_local Block* running = nullptr;

Block::Block(const dim3& block_index, const dim3& block_size, const std::function<void()>& body, Stacks& stacks)
    : index(block_index), size(block_size) {
  const unsigned count = size.x * size.y * size.z;
  threads_.resize(count);
  warps_.resize((count + 31) / 32);
  stacks.grow(count);
  alive_ = count;
  for (unsigned i = 0; i < count; ++i) {
    threads_[i].index = {i % size.x, i / size.x % size.y, i / (size.x * size.y)};
    const context::stack_context stack = stacks.of(i);
    threads_[i].fiber = context::fiber(std::allocator_arg, context::preallocated(stack.sp, stack.size, stack),
                                       NoAllocator{}, [this, i, &body](context::fiber&& from) {
                                         scheduler_ = std::move(from);
                                         body();
                                         threads_[i].state = State::kDone;
                                         --alive_;
                                         release_barrier();
                                         return std::move(scheduler_);
                                       });
  }
}

// An exception cannot leave a fiber, so the scheduler throws it.
void Block::fail(std::string message) {
  if (error_.empty()) error_ = std::move(message);
}

void Block::wait(State state, const char* where) {
  Thread& me = threads_[current];
  me.state = state;
  me.where = where;
  scheduler_ = std::move(scheduler_).resume();
}

// A barrier waits only for threads that have not ended.
void Block::release_barrier() {
  if (at_barrier_ == 0 || at_barrier_ < alive_) return;
  at_barrier_ = 0;
  for (Thread& thread : threads_) {
    if (thread.state == State::kAtBarrier) thread.state = State::kReady;
  }
}

void Block::barrier(const char* where) {
  threads_[current].state = State::kAtBarrier;
  ++at_barrier_;
  release_barrier();
  wait(threads_[current].state, where);
}

const uint64_t* Block::exchange(uint32_t mask, uint64_t value, const char* where) {
  const unsigned own = current % 32;
  Warp& warp = warps_[current / 32];
  if ((mask >> own & 1) == 0) fail(std::string(where) + ": a lane is not in its own mask");
  if (warp.arrived != 0 && warp.mask != mask) fail(std::string(where) + ": lanes of a warp gave different masks");
  warp.mask = mask;
  warp.given[own] = value;
  warp.arrived |= 1u << own;
  const uint32_t turn = warp.turn % 2;
  if (warp.arrived != mask) {
    wait(State::kInExchange, where);
    return warp.taken[turn];
  }
  std::copy(std::begin(warp.given), std::end(warp.given), warp.taken[turn]);
  warp.arrived = 0;
  ++warp.turn;
  for (unsigned l = 0; l < 32 && current / 32 * 32 + l < threads_.size(); ++l) {
    Thread& other = threads_[current / 32 * 32 + l];
    if (other.state == State::kInExchange) other.state = State::kReady;
  }
  return warp.taken[turn];
}

// Runs the thread until it waits or ends. Returns false if it cannot run.
bool Block::turn_of(unsigned i) {
  if (threads_[i].state != State::kReady || !error_.empty()) return false;
  current = i;
  threads_[i].fiber = std::move(threads_[i].fiber).resume();
  return true;
}

// Names one thread at each place, and how many others wait there.
void Block::say_who_waits() {
  std::map<std::string, std::pair<size_t, size_t>> places;  // the first thread, the count
  for (size_t i = 0; i < threads_.size(); ++i) {
    if (threads_[i].state != State::kDone) ++places.try_emplace(threads_[i].where, i, 0).first->second.second;
  }
  std::string text = "threads wait for ever:";
  for (const auto& [where, waiting] : places) {
    text += (text.ends_with(':') ? " thread " : ", thread ") + std::to_string(waiting.first);
    if (waiting.second > 1) text += " and " + std::to_string(waiting.second - 1) + " more";
    text += " in " + where;
  }
  fail(text);
}

void Block::run(std::mt19937_64* order) {
  Block* outer = std::exchange(running, this);
  std::vector<unsigned> turns(threads_.size());
  for (unsigned i = 0; i < turns.size(); ++i) turns[i] = i;
  std::vector<uint8_t> sleeps(warps_.size(), 0);
  uint64_t left = 0;
  while (alive_ > 0 && error_.empty()) {
    if (order != nullptr) std::shuffle(turns.begin(), turns.end(), *order);
    // Warps may fall behind others as far as barriers allow.
    if (order != nullptr && left-- == 0) {
      left = 1 + (*order)() % 32;
      for (uint8_t& sleep : sleeps) sleep = (*order)() % 2 == 0;
    }
    bool has_progress = false;
    for (const unsigned i : turns) has_progress = (sleeps[i / 32] == 0 && turn_of(i)) || has_progress;
    for (const unsigned i : turns) has_progress = has_progress || turn_of(i);
    if (!has_progress && error_.empty()) say_who_waits();
  }
  running = outer;
  if (error_.empty()) return;
  // Waiting fibers own nothing, so they are unwound with the block.
  throw std::runtime_error(error_);
}

}  // namespace

void launch(const Launch& launch, const std::function<void()>& thread) {
  static thread_local Stacks stacks;
  std::mt19937_64 order(launch.shuffle);
  for (unsigned z = 0; z < launch.grid.z; ++z) {
    for (unsigned y = 0; y < launch.grid.y; ++y) {
      for (unsigned x = 0; x < launch.grid.x; ++x) {
        Block block({x, y, z}, launch.block, thread, stacks);
        block.run(launch.shuffle == 0 ? nullptr : &order);
      }
    }
  }
}

const dim3& thread_index() { return running->thread().index; }
const dim3& block_index() { return running->index; }
const dim3& block_size() { return running->size; }
void barrier(const char* where) { running->barrier(where); }
const uint64_t* exchange(uint32_t mask, uint64_t value, const char* where) {
  return running->exchange(mask, value, where);
}
unsigned lane() { return running->current % 32; }

}  // namespace fxopt::emulation
