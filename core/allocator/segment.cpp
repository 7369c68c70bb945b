// Allocates segments from the device, and retries if the device is full.
#include "core/allocator/caching_allocator.h"
#include "core/check.h"

namespace fxopt {

// Returns null if the device has no room even after all cached memory was released.
Block* CachingAllocator::obtain(const Request& request) {
  if (collects_garbage()) collect_garbage();
  Block* block = make_segment(request);
  if (block == nullptr && release_oversize(request)) block = make_segment(request);
  if (block == nullptr && captures_ == 0) {
    release_cached();
    ++statistics_.num_alloc_retries;
    block = make_segment(request);
  }
  return block;
}

Block* CachingAllocator::make_segment(const Request& request) {
  const int64_t bytes = request.segment_bytes;
  if (is_beyond_fraction(bytes)) return nullptr;
  if (config_.expandable_segments) return expand(request);
  const std::optional<uint64_t> address = device_.allocate(bytes);
  if (!address.has_value()) return nullptr;
  BlockPool& pool = *request.pool;
  Block* block = arena_.make(*address, bytes, request.stream, &pool);
  segments_.emplace(*address, block);
  ++pool.segments;
  add(statistics_.segment, pool, 1);
  add(statistics_.reserved_bytes, pool, bytes);
  if (bytes >= config_.max_split_bytes) statistics_.oversize_segments.increase(1);
  ++statistics_.num_device_alloc;
  tell(AllocatorAction::kSegmentAllocate, *address, bytes, request.stream);
  return block;
}

// Counts the whole segment, although an expandable segment may need less memory.
bool CachingAllocator::is_beyond_fraction(int64_t bytes) const {
  return config_.memory_fraction < 1 && reserved_bytes() + bytes > allowed_bytes_;
}

// ---- releasing

bool CachingAllocator::collects_garbage() const {
  return config_.memory_fraction < 1 && config_.garbage_collection_threshold > 0;
}

// Repeatedly releases the unsplit blocks of the large pool whose age is at least the mean age.
// Stops if enough memory is free, or if no block is left. The age of a block is the number of
// searches of the pool since the block was cached.
void CachingAllocator::collect_garbage() {
  const auto threshold =
      static_cast<int64_t>(config_.garbage_collection_threshold * static_cast<double>(allowed_bytes_));
  const int64_t excess = reserved_bytes() - threshold;
  if (excess <= 0 || config_.expandable_segments) return;
  int64_t total_age = 0;
  std::vector<Block*> blocks;
  for (Block* block : large_.cached) {
    if (block->is_split()) continue;
    total_age += large_.searches - block->cached_at;
    blocks.push_back(block);
  }
  int64_t reclaimed = 0;
  for (size_t before = 0; reclaimed < excess && !blocks.empty() && blocks.size() != before;) {
    before = blocks.size();
    const double mean_age = static_cast<double>(total_age) / static_cast<double>(blocks.size());
    std::erase_if(blocks, [&](Block* block) {
      const int64_t age = large_.searches - block->cached_at;
      if (static_cast<double>(age) < mean_age) return false;
      reclaimed += block->bytes;
      total_age -= age;
      release_segment(block);
      return true;
    });
  }
}

// Releases one cached block that has at least max_split_size bytes and is large enough for the
// request. If no block is large enough, releases several blocks of at least max_split_size bytes,
// from the largest down. Returns false if the released blocks are too small in total.
bool CachingAllocator::release_oversize(const Request& request) {
  if (config_.max_split_bytes == AllocatorConfig::kUnlimited || config_.expandable_segments) return false;
  const auto& cached = request.pool->cached;
  Block key;
  key.stream = request.stream;
  key.bytes = std::max(request.bytes, config_.max_split_bytes);
  auto at = cached.lower_bound(&key);
  if (at != cached.end() && (*at)->stream == request.stream) {
    release_segment(*at);
    return true;
  }
  int64_t released = 0;
  while (released < key.bytes && at != cached.begin()) {
    Block* block = *std::prev(at);
    if (block->bytes < config_.max_split_bytes || block->stream != request.stream) break;
    released += block->bytes;
    release_segment(block);  // `at` stays valid
  }
  return released >= key.bytes;
}

void CachingAllocator::empty_cache() { release_cached(); }

void CachingAllocator::release_cached() {
  if (captures_ == 0) {
    wait_for_events();
    release_blocks(large_);
    release_blocks(small_);
  }
  for (auto at = private_pools_.begin(); at != private_pools_.end();) {
    PrivatePool& pool = *at->second;
    if (pool.users == 0) {
      release_blocks(pool.small);
      release_blocks(pool.large);
    }
    at = pool.users == 0 && pool.is_empty() ? private_pools_.erase(at) : std::next(at);
  }
}

void CachingAllocator::release_blocks(BlockPool& pool) {
  const std::vector<Block*> blocks(pool.cached.begin(), pool.cached.end());  // releasing changes `cached`
  for (Block* block : blocks) {
    if (config_.expandable_segments) {
      unmap_block(block);
    } else if (!block->is_split()) {
      release_segment(block);
    }
  }
}

void CachingAllocator::release_segment(Block* block) {
  FXOPT_CHECK(!block->is_split() && block->is_free(), "a segment in use is released");
  BlockPool& pool = *block->pool;
  ++statistics_.num_device_free;
  tell(AllocatorAction::kSegmentFree, block->address, block->bytes, block->stream);
  device_.free(block->address, block->bytes);
  subtract(statistics_.segment, pool, 1);
  subtract(statistics_.reserved_bytes, pool, block->bytes);
  if (block->bytes >= config_.max_split_bytes) statistics_.oversize_segments.decrease(1);
  pool.cached.erase(block);
  --pool.segments;
  segments_.erase(block->address);
  arena_.drop(block);
}

}  // namespace fxopt
