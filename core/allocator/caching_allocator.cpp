// Rounds requests, chooses pools and blocks, and splits blocks. Also handles streams, private pools
// and reports.
#include "core/allocator/caching_allocator.h"

#include <bit>
#include <limits>

#include "core/check.h"

namespace fxopt {
namespace {

int64_t round_up(int64_t bytes, int64_t quantum) { return (bytes + quantum - 1) / quantum * quantum; }

int log2_floor(int64_t value) { return 63 - std::countl_zero(static_cast<uint64_t>(value)); }

int64_t divisions_for(int64_t bytes, const AllocatorConfig& config) {
  constexpr int kFirst = 20;  // log2 of 1 MiB
  const int index = std::clamp(log2_floor(bytes) - kFirst, 0, static_cast<int>(AllocatorConfig::kNumDivisions) - 1);
  return config.roundup_power2_divisions[static_cast<size_t>(index)];
}

// Divides the interval between the powers of two around `bytes` into `divisions` equal steps, and
// rounds `bytes` up to a step.
int64_t round_to_division(int64_t bytes, int64_t divisions) {
  const int64_t floor = int64_t{1} << log2_floor(bytes);
  if (bytes == floor) return bytes;
  const int64_t step = floor >> log2_floor(divisions);
  return step == 0 ? 2 * floor : round_up(bytes, step);
}

void insert_sorted(std::vector<int64_t>& values, int64_t value) {
  const auto at = std::lower_bound(values.begin(), values.end(), value);
  if (at == values.end() || *at != value) values.insert(at, value);
}

}  // namespace

int64_t round_request(int64_t bytes, const AllocatorConfig& config) {
  if (bytes < kMinBlockBytes) return kMinBlockBytes;
  const int64_t divisions = divisions_for(bytes, config);
  if (divisions > 1 && bytes > kMinBlockBytes * divisions) return round_to_division(bytes, divisions);
  return round_up(bytes, kMinBlockBytes);
}

int64_t segment_bytes_for(int64_t rounded_bytes, const AllocatorConfig& config) {
  if (rounded_bytes <= kSmallBytes) return kSmallSegmentBytes;
  if (rounded_bytes < kMinLargeBytes) return config.large_segment_bytes;
  return round_up(rounded_bytes, kRoundLargeBytes);
}

CachingAllocator::CachingAllocator(AllocatorDevice& device, AllocatorConfig config)
    : device_(device), config_(std::move(config)) {
  FXOPT_CHECK(config_.large_segment_bytes >= kMinLargeBytes, "large segments are smaller than the blocks they serve");
  FXOPT_CHECK(config_.max_split_bytes >= config_.large_segment_bytes, "max_split_bytes is below large_segment_bytes");
  if (config_.memory_fraction < 1) {
    allowed_bytes_ = static_cast<int64_t>(config_.memory_fraction * static_cast<double>(device_.total_bytes()));
  }
}

// ---- requests

std::optional<uint64_t> CachingAllocator::allocate(int64_t bytes, int64_t stream) {
  FXOPT_CHECK(bytes >= 0, "a request for a negative number of bytes");
  if (bytes == 0) return 0;
  if (bytes > kMaxRequestBytes) return std::nullopt;
  if (captures_ == 0) process_events();
  const int64_t rounded = round_request(bytes, config_);
  const Request request{rounded, stream, &pool_for(rounded, stream), segment_bytes_for(rounded, config_)};
  Block* block = take_cached(request);
  if (block == nullptr) block = obtain(request);
  if (block == nullptr) {
    tell(AllocatorAction::kOutOfMemory, static_cast<uint64_t>(device_.free_bytes()), rounded, stream);
    ++statistics_.num_ooms;
    return std::nullopt;
  }
  hand_out(block, request, bytes);
  return block->address;
}

BlockPool& CachingAllocator::pool_for(int64_t bytes, int64_t stream) {
  const bool small = bytes <= kSmallBytes;
  for (auto route = routes_.rbegin(); route != routes_.rend(); ++route) {
    if (!route->filter(stream)) continue;
    PrivatePool& pool = *private_pools_.at(route->id);
    return small ? pool.small : pool.large;
  }
  return small ? small_ : large_;
}

// Takes the smallest cached block of the stream that fits. Among equal sizes, takes the block at
// the lowest address. Returns null if max_split_size or max_non_split_rounding forbids this block,
// because these limits forbid every larger block as well.
Block* CachingAllocator::take_cached(const Request& request) {
  BlockPool& pool = *request.pool;
  if (collects_garbage()) ++pool.searches;
  Block key;
  key.stream = request.stream;
  key.bytes = request.bytes;
  const auto found = pool.cached.lower_bound(&key);
  if (found == pool.cached.end() || (*found)->stream != request.stream) return nullptr;
  Block* block = config_.expandable_segments ? prefer_short_tail(pool, *found) : *found;
  const bool oversize_request = request.bytes >= config_.max_split_bytes;
  if (!oversize_request && block->bytes >= config_.max_split_bytes) return nullptr;
  if (oversize_request && block->bytes >= request.bytes + config_.max_non_split_rounding_bytes) return nullptr;
  pool.cached.erase(block);
  return block;
}

// Prefers blocks that cannot grow. If unmapped addresses follow a block of an expandable segment,
// the size of the block includes these addresses. Starts at the best fit, and goes to the next
// larger block while this size decreases.
Block* CachingAllocator::prefer_short_tail(BlockPool& pool, Block* fit) const {
  const auto with_tail = [](const Block* block) {
    return block->bytes + (block->next != nullptr && !block->next->mapped ? block->next->bytes : 0);
  };
  auto at = pool.cached.find(fit);
  for (auto next = std::next(at); next != pool.cached.end(); at = next++) {
    if ((*next)->stream != fit->stream || with_tail(*next) >= with_tail(*at)) break;
  }
  return *at;
}

bool CachingAllocator::should_split(const Block& block, int64_t bytes) const {
  const int64_t rest = block.bytes - bytes;
  if (block.pool->small || config_.expandable_segments) return rest >= kMinBlockBytes;
  return bytes < config_.max_split_bytes && rest > kSmallBytes;
}

void CachingAllocator::hand_out(Block* block, const Request& request, int64_t requested_bytes) {
  if (should_split(*block, request.bytes)) {
    split(block, request.bytes);
  } else if (block->is_split() && !config_.expandable_segments) {
    subtract(statistics_.inactive_split, *block->pool, 1);
    subtract(statistics_.inactive_split_bytes, *block->pool, block->bytes);
  }
  block->allocated = true;
  block->requested_bytes = requested_bytes;
  allocated_[block->address] = block;
  tell(AllocatorAction::kAllocate, block->address, requested_bytes, block->stream);
  count_allocation(*block);
}

// Keeps the low `bytes` in `block` and caches the rest.
void CachingAllocator::split(Block* block, int64_t bytes) {
  const bool was_split = block->is_split();
  Block* rest = cut(block, bytes);
  cache(rest);
  if (config_.expandable_segments) return;
  if (was_split) {
    subtract(statistics_.inactive_split_bytes, *block->pool, bytes);
  } else {
    add(statistics_.inactive_split, *block->pool, 1);
    add(statistics_.inactive_split_bytes, *block->pool, rest->bytes);
  }
}

Block* CachingAllocator::cut(Block* block, int64_t bytes) {
  Block* rest =
      arena_.make(block->address + static_cast<uint64_t>(bytes), block->bytes - bytes, block->stream, block->pool);
  rest->mapped = block->mapped;
  rest->previous = block;
  rest->next = block->next;
  if (rest->next != nullptr) rest->next->previous = rest;
  block->next = rest;
  block->bytes = bytes;
  return rest;
}

void CachingAllocator::count_allocation(const Block& block) {
  add(statistics_.allocation, *block.pool, 1);
  add(statistics_.allocated_bytes, *block.pool, block.bytes);
  add(statistics_.active, *block.pool, 1);
  add(statistics_.active_bytes, *block.pool, block.bytes);
  add(statistics_.requested_bytes, *block.pool, block.requested_bytes);
  if (block.bytes >= config_.max_split_bytes) statistics_.oversize_allocations.increase(1);
}

Block* CachingAllocator::block_at(uint64_t address) const {
  const auto found = allocated_.find(address);
  FXOPT_CHECK(found != allocated_.end(), "no block is allocated at this address");
  return found->second;
}

int64_t CachingAllocator::block_bytes(uint64_t address) const { return block_at(address)->bytes; }

// ---- streams and private pools

void CachingAllocator::record_stream(uint64_t address, int64_t stream) {
  Block* block = block_at(address);
  if (stream == block->stream) return;
  insert_sorted(block->uses, stream);
  if (captures_ > 0) insert_sorted(block->capture_uses, stream);
}

void CachingAllocator::begin_pool(PoolId id, std::function<bool(int64_t)> filter) {
  for (const Route& route : routes_) FXOPT_CHECK(route.id != id, "allocations already go to this pool");
  std::unique_ptr<PrivatePool>& pool = private_pools_[id];
  if (pool == nullptr) {
    pool = std::make_unique<PrivatePool>();
    pool->id = id;
  } else {
    FXOPT_CHECK(pool->users > 0, "the pool was released");
    ++pool->users;
  }
  routes_.push_back(Route{id, std::move(filter)});
}

void CachingAllocator::end_pool(PoolId id) {
  const auto found = std::find_if(routes_.begin(), routes_.end(), [&id](const Route& route) { return route.id == id; });
  FXOPT_CHECK(found != routes_.end(), "no allocations go to this pool");
  routes_.erase(found);
}

void CachingAllocator::end_capture() {
  FXOPT_CHECK(captures_ > 0, "no capture is active");
  --captures_;
}

void CachingAllocator::release_pool(PoolId id) {
  const auto found = private_pools_.find(id);
  FXOPT_CHECK(found != private_pools_.end() && found->second->users > 0, "the pool is not in use");
  if (--found->second->users == 0 && found->second->is_empty()) private_pools_.erase(found);
}

// ---- reports

void CachingAllocator::reset_peaks() {
  for_each(statistics_, [](Statistic& statistic) { statistic.peak = statistic.current; });
}

void CachingAllocator::reset_accumulated() {
  for_each(statistics_, [](Statistic& statistic) { statistic.allocated = statistic.freed = 0; });
  statistics_.num_alloc_retries = statistics_.num_ooms = statistics_.num_sync_all_streams = 0;
  statistics_.num_device_alloc = statistics_.num_device_free = 0;
}

std::vector<SegmentInfo> CachingAllocator::snapshot() const {
  std::vector<SegmentInfo> segments;
  for (const auto& [address, head] : segments_) {
    bool open = false;  // true if the last segment ends where this block begins
    for (const Block* block = head; block != nullptr; block = block->next) {
      if (block->mapped) {
        if (!open) {
          const PrivatePool* owner = block->pool->owner;
          segments.push_back({block->address,
                              0,
                              block->stream,
                              block->pool->small,
                              config_.expandable_segments,
                              owner != nullptr ? owner->id : PoolId{0, 0},
                              {}});
        }
        const BlockState state = block->allocated   ? BlockState::kAllocated
                                 : block->is_free() ? BlockState::kFree
                                                    : BlockState::kPendingFree;
        segments.back().bytes += block->bytes;
        segments.back().blocks.push_back({block->address, block->bytes, block->requested_bytes, state});
      }
      open = block->mapped;
    }
  }
  return segments;
}

}  // namespace fxopt
