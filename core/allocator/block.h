#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace fxopt {

// A memory pool of the user's or of a captured graph: torch.cuda.graph_pool_handle.
using PoolId = std::pair<int64_t, int64_t>;

struct BlockPool;

// The records of CachingAllocator. Not for use elsewhere.

// A stretch of addresses of one segment. The blocks of a segment tile it; neighbours are linked.
struct Block {
  uint64_t address = 0;
  int64_t bytes = 0;
  int64_t requested_bytes = 0;
  int64_t stream = 0;
  BlockPool* pool = nullptr;
  Block* previous = nullptr;
  Block* next = nullptr;
  bool allocated = false;
  bool mapped = true;          // false: addresses of an expandable segment without memory
  int64_t pending_events = 0;  // events of streams that may still use the freed block
  int64_t cached_at = 0;       // the pool's count of searches when the block was put there
  std::vector<int64_t> uses;   // other streams that used it, ascending, no events recorded yet
  // the members of `uses` recorded while a capture was under way
  std::vector<int64_t> capture_uses;

  bool is_split() const { return previous != nullptr || next != nullptr; }
  // Freed, and no stream uses it any more.
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
  PrivatePool* owner;    // null for the default pools
  int64_t searches = 0;  // counted only while garbage is collected by age
  int64_t segments = 0;  // classic ones and address ranges
};

struct PrivatePool {
  // Without segments and without reserved addresses.
  bool is_empty() const { return small.segments == 0 && large.segments == 0; }

  PoolId id;
  BlockPool small{true, this};
  BlockPool large{false, this};
  int64_t users = 1;  // begun and not released
};

// Blocks at stable addresses. Dropped blocks are reused.
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
