#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace fxopt {

// The id of a private memory pool, which belongs to the user or to a captured CUDA graph.
// torch.cuda.graph_pool_handle returns an id of this kind.
using PoolId = std::pair<int64_t, int64_t>;

struct BlockPool;

// The types below are internal records of CachingAllocator. Other code must not use them.

// A range of addresses within one segment. The blocks of a segment cover the segment without gaps
// or overlaps. Each block points to its neighbours.
struct Block {
  uint64_t address = 0;
  int64_t bytes = 0;
  int64_t requested_bytes = 0;
  int64_t stream = 0;
  BlockPool* pool = nullptr;
  Block* previous = nullptr;
  Block* next = nullptr;
  bool allocated = false;
  bool mapped = true;          // false for addresses without memory in an expandable segment
  int64_t pending_events = 0;  // unfinished events of streams that may still use the freed block
  int64_t cached_at = 0;       // value of BlockPool::searches when the block was cached
  // Other streams that used the block, in ascending order. The events of these streams are not
  // recorded yet.
  std::vector<int64_t> uses;
  // The streams in `uses` whose use of the block was recorded during the capture of a CUDA graph.
  std::vector<int64_t> capture_uses;

  bool is_split() const { return previous != nullptr || next != nullptr; }
  // Returns true if the block was freed and no stream uses it any more.
  bool is_free() const { return !allocated && pending_events == 0 && uses.empty(); }
  uint64_t end() const { return address + static_cast<uint64_t>(bytes); }
};

struct BlockBySize {
  bool operator()(const Block* a, const Block* b) const {
    return std::tie(a->stream, a->bytes, a->address) < std::tie(b->stream, b->bytes, b->address);
  }
};

struct BlockByAddress {
  bool operator()(const Block* a, const Block* b) const {
    return std::tie(a->stream, a->address) < std::tie(b->stream, b->address);
  }
};

struct PrivatePool;

struct BlockPool {
  BlockPool(bool is_small, PrivatePool* in) : small(is_small), owner(in) {}
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  std::set<Block*, BlockBySize> cached;       // free blocks with memory
  std::set<Block*, BlockByAddress> unmapped;  // address ranges without memory
  bool small;
  PrivatePool* owner;  // null for the default pools
  // Number of searches for a cached block. Counted only if garbage collection is on.
  int64_t searches = 0;
  // Number of segments that are not expandable, plus the number of reserved address ranges.
  int64_t segments = 0;
};

struct PrivatePool {
  // Returns true if the pool has neither segments nor reserved address ranges.
  bool is_empty() const { return small.segments == 0 && large.segments == 0; }

  PoolId id;
  BlockPool small{true, this};
  BlockPool large{false, this};
  int64_t users = 1;  // begin_pool() calls without a matching release_pool() call
};

// Allocates Block objects, which never move in host memory. Reuses dropped objects.
class BlockArena {
 public:
  Block* make(uint64_t address, int64_t bytes, int64_t stream, BlockPool* pool) {
    Block* block = nullptr;
    if (spare_.empty()) {
      block = &blocks_.emplace_back();
    } else {
      block = spare_.back();
      spare_.pop_back();
      *block = Block{};
    }
    block->address = address;
    block->bytes = bytes;
    block->stream = stream;
    block->pool = pool;
    return block;
  }
  void drop(Block* block) { spare_.push_back(block); }

 private:
  std::deque<Block> blocks_;
  std::vector<Block*> spare_;
};

}  // namespace fxopt
