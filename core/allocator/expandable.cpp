// Expandable segments. Each stream and pool has one long range of addresses. Only the pages in use
// have memory.
//
//   | allocated | free | no memory .................................... |
//   0           ^ a request takes the lowest place with enough free and unmapped addresses,
//                 and maps the missing pages
#include "core/allocator/caching_allocator.h"

namespace fxopt {

// Maps pages until a block is large enough for the request, and removes this block from the cache.
// Returns null if the device runs out of memory. Pages that are mapped by then remain cached.
Block* CachingAllocator::expand(const Request& request) {
  Block* block = find_room(request);
  if (block != nullptr && !block->mapped) block = map_block(block, std::min(block->bytes, request.bytes));
  while (block != nullptr && block->bytes < request.bytes) {
    Block* tail = block->next;  // free neighbours are merged, so the next block has no memory
    block = map_block(tail, std::min(tail->bytes, request.bytes - block->bytes));
  }
  if (block != nullptr) request.pool->cached.erase(block);
  return block;
}

// Finds the lowest run of free and unmapped addresses that is large enough for the request. Returns
// the first block of this run. If no run is large enough, reserves a new range. Returns null if
// even a whole range is too small.
Block* CachingAllocator::find_room(const Request& request) {
  BlockPool& pool = *request.pool;
  Block key;
  key.stream = request.stream;
  for (auto at = pool.unmapped.lower_bound(&key); at != pool.unmapped.end() && (*at)->stream == request.stream; ++at) {
    Block* first = *at;
    if (first->previous != nullptr && first->previous->is_free()) first = first->previous;
    int64_t room = 0;
    for (const Block* block = first; block != nullptr && block->is_free() && room < request.bytes;
         block = block->next) {
      room += block->bytes;
    }
    if (room >= request.bytes) return first;
  }
  const int64_t bytes = range_bytes(pool);
  if (bytes < request.bytes) return nullptr;
  Block* range = arena_.make(device_.reserve(bytes), bytes, request.stream, &pool);
  range->mapped = false;
  segments_.emplace(range->address, range);
  ++pool.segments;
  pool.unmapped.insert(range);
  return range;
}

// Maps the pages under the first `bytes` of an unmapped block. Returns the cached free block that
// then contains these pages, or null if the device has no memory.
Block* CachingAllocator::map_block(Block* block, int64_t bytes) {
  BlockPool& pool = *block->pool;
  const int64_t page = page_bytes(pool);
  const int64_t mapped = (bytes + page - 1) / page * page;
  const uint64_t address = block->address;
  if (!device_.map(address, mapped, page)) return nullptr;
  pool.unmapped.erase(block);
  if (mapped < block->bytes) pool.unmapped.insert(cut(block, mapped));
  block->mapped = true;
  Block* merged = merge_neighbours(block).block;
  cache(merged);
  add(statistics_.reserved_bytes, pool, mapped);
  ++statistics_.num_device_alloc;
  tell(AllocatorAction::kSegmentMap, address, mapped, merged->stream);
  return merged;
}

// Unmaps the whole pages inside a cached block. If the range then has no memory, releases the
// range.
void CachingAllocator::unmap_block(Block* block) {
  BlockPool& pool = *block->pool;
  const int64_t page = page_bytes(pool);
  const auto range = std::prev(segments_.upper_bound(block->address));
  const auto offset = static_cast<int64_t>(block->address - range->first);
  const int64_t first = (offset + page - 1) / page * page;
  const int64_t last = (offset + block->bytes) / page * page;
  if (first >= last) return;
  pool.cached.erase(block);
  if (first > offset) {
    Block* before = block;
    block = cut(before, first - offset);
    cache(before);
  }
  if (last - first < block->bytes) cache(cut(block, last - first));
  block->mapped = false;
  const uint64_t address = block->address;
  device_.unmap(address, last - first, page, block->stream);
  subtract(statistics_.reserved_bytes, pool, last - first);
  ++statistics_.num_device_free;
  tell(AllocatorAction::kSegmentUnmap, address, last - first, block->stream);

  block = merge_neighbours(block).block;
  if (block->is_split()) {
    pool.unmapped.insert(block);
    return;
  }
  device_.unreserve(block->address, block->bytes);
  --pool.segments;
  segments_.erase(range);
  arena_.drop(block);
}

int64_t CachingAllocator::page_bytes(const BlockPool& pool) const {
  return pool.small ? kSmallSegmentBytes : config_.large_segment_bytes;
}

// Returns 9/8 of the device's memory, rounded up to whole pages. The extra addresses allow the
// allocator to unmap pages in the middle of a range and to map pages at the end instead.
int64_t CachingAllocator::range_bytes(const BlockPool& pool) const {
  const int64_t page = page_bytes(pool);
  const int64_t bytes = device_.total_bytes() + device_.total_bytes() / 8;
  return (bytes + page - 1) / page * page;
}

}  // namespace fxopt
