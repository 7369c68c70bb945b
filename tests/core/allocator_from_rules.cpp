#include "tests/core/allocator_from_rules.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include "tests/units.h"

namespace fxopt {
namespace {

constexpr int64_t kMinBlock = 512;
constexpr int64_t kSmallSize = kMiB;
constexpr int64_t kSmallBuffer = 2 * kMiB;
constexpr int64_t kMinLargeAlloc = 10 * kMiB;
constexpr int64_t kRoundLarge = 2 * kMiB;
constexpr int64_t kMostBytes = int64_t{1} << 60;

int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }
int64_t round_down(int64_t value, int64_t step) { return value / step * step; }

int log2_floor(int64_t value) { return static_cast<int>(std::bit_width(static_cast<uint64_t>(value))) - 1; }

uint64_t behind(uint64_t address, int64_t bytes) { return address + static_cast<uint64_t>(bytes); }

}  // namespace

AllocatorFromRules::AllocatorFromRules(AllocatorDevice& device, const AllocatorConfig& config)
    : device_(device), config_(config) {}

int64_t AllocatorFromRules::round_size(int64_t bytes) const {
  if (bytes < kMinBlock) return kMinBlock;
  const int bucket = std::clamp(log2_floor(bytes) - log2_floor(kMiB), 0, 15);
  const int64_t divisions = config_.roundup_power2_divisions[static_cast<size_t>(bucket)];
  if (divisions <= 1 || bytes <= kMinBlock * divisions) return round_up(bytes, kMinBlock);
  const int64_t floor = int64_t{1} << log2_floor(bytes);
  const int64_t step = floor >> log2_floor(divisions);
  return step == 0 ? 2 * floor : round_up(bytes, step);
}

AllocatorFromRules::Request AllocatorFromRules::request_of(int64_t bytes, int64_t stream) const {
  const int64_t size = round_size(bytes);
  Request request{bytes, size, 0, stream, {{0, 0}, size <= kSmallSize}};
  for (const auto& [id, filter] : begun_) {
    if (!filter(stream)) continue;
    request.pool.id = id;
    break;
  }
  request.segment_bytes = size <= kSmallSize      ? kSmallBuffer
                          : size < kMinLargeAlloc ? config_.large_segment_bytes
                                                  : round_up(size, kRoundLarge);
  return request;
}

AllocatorFromRules::Place AllocatorFromRules::find(uint64_t address) {
  Segment& segment = std::prev(segments_.upper_bound(address))->second;
  return {&segment, segment.blocks.find(address)};
}

int64_t AllocatorFromRules::page_of(const Segment& segment) const {
  return segment.pool.small ? kSmallBuffer : config_.large_segment_bytes;
}

int64_t AllocatorFromRules::allowed() const {
  return static_cast<int64_t>(config_.memory_fraction * static_cast<double>(device_.total_bytes()));
}

template <class Change>
void AllocatorFromRules::count(StatisticByPool& statistic, bool small, Change change) {
  change(statistic[static_cast<size_t>(PoolKind::kAll)]);
  change(statistic[static_cast<size_t>(small ? PoolKind::kSmall : PoolKind::kLarge)]);
}

void AllocatorFromRules::add(StatisticByPool& statistic, bool small, int64_t amount) {
  count(statistic, small, [amount](Statistic& one) { one.change(amount); });
}

std::optional<uint64_t> AllocatorFromRules::allocate(int64_t bytes, int64_t stream) {
  if (bytes == 0) return 0;
  if (bytes > kMostBytes) return std::nullopt;
  if (captures_ == 0) process_events();
  const Request request = request_of(bytes, stream);
  std::optional<Place> place = search(request);
  if (!place) place = get_memory(request);
  if (!place) {
    ++statistics_.num_ooms;
    return std::nullopt;
  }
  return take(*place, request);
}

// The size a block of an expandable segment can grow to in place.
int64_t AllocatorFromRules::bytes_with_tail(const Place& place) {
  const auto next = std::next(place.block);
  const bool grows = next != place.segment->blocks.end() && next->second.state == State::kUnmapped;
  return place.block->second.bytes + (grows ? next->second.bytes : 0);
}

std::optional<AllocatorFromRules::Place> AllocatorFromRules::search(const Request& request) {
  ++searches_[request.pool];
  std::map<std::pair<int64_t, uint64_t>, Place> candidates;  // by size and address
  for (auto& [base, segment] : segments_) {
    if (segment.pool != request.pool || segment.stream != request.stream) continue;
    for (auto block = segment.blocks.begin(); block != segment.blocks.end(); ++block) {
      if (block->second.state != State::kFree || block->second.bytes < request.size) continue;
      candidates.insert({{block->second.bytes, block->first}, {&segment, block}});
    }
  }
  if (candidates.empty()) return std::nullopt;
  // Only neighbours in the order are compared, so it need not be the least size with tail that is found.
  auto best = candidates.begin();
  for (auto next = std::next(best); next != candidates.end(); best = next++) {
    if (bytes_with_tail(next->second) >= bytes_with_tail(best->second)) break;
  }
  const int64_t bytes = best->second.block->second.bytes;
  const bool oversize = request.size >= config_.max_split_bytes;
  if (!oversize && bytes >= config_.max_split_bytes) return std::nullopt;
  if (oversize && bytes >= request.size + config_.max_non_split_rounding_bytes) return std::nullopt;
  return best->second;
}

std::optional<AllocatorFromRules::Place> AllocatorFromRules::get_memory(const Request& request) {
  if (has_limit() && config_.garbage_collection_threshold > 0) collect_garbage();
  std::optional<Place> place = get_segment(request);
  if (!place && config_.max_split_bytes != AllocatorConfig::kUnlimited && release_oversize(request)) {
    place = get_segment(request);
  }
  if (!place && captures_ == 0) {
    release_cached();
    ++statistics_.num_alloc_retries;
    place = get_segment(request);
  }
  return place;
}

std::optional<AllocatorFromRules::Place> AllocatorFromRules::get_segment(const Request& request) {
  if (has_limit() && reserved() + request.segment_bytes > allowed()) return std::nullopt;
  if (config_.expandable_segments) return expand(request);
  const std::optional<uint64_t> address = device_.allocate(request.segment_bytes);
  if (!address) return std::nullopt;
  Segment& segment = segments_[*address];
  segment = {request.pool, request.stream, false, request.segment_bytes, {}};
  segment.blocks[*address].bytes = request.segment_bytes;
  add(statistics_.segment, request.pool.small, 1);
  add(statistics_.reserved_bytes, request.pool.small, request.segment_bytes);
  if (request.segment_bytes >= config_.max_split_bytes) statistics_.oversize_segments.increase(1);
  ++statistics_.num_device_alloc;
  return Place{&segment, segment.blocks.begin()};
}

bool AllocatorFromRules::splits(const Segment& segment, int64_t block_bytes, int64_t size) const {
  const int64_t remaining = block_bytes - size;
  if (segment.pool.small || config_.expandable_segments) return remaining >= kMinBlock;
  return size < config_.max_split_bytes && remaining > kSmallSize;
}

uint64_t AllocatorFromRules::take(Place place, const Request& request) {
  Segment& segment = *place.segment;
  const uint64_t address = place.block->first;
  Block& block = place.block->second;
  const bool small = segment.pool.small;
  const bool was_split = segment.blocks.size() > 1;
  int64_t inactive = was_split ? -1 : 0;
  int64_t inactive_bytes = was_split ? -block.bytes : 0;
  if (splits(segment, block.bytes, request.size)) {
    const int64_t remaining = block.bytes - request.size;
    segment.blocks[behind(address, request.size)].bytes = remaining;
    block.bytes = request.size;
    inactive += 1;
    inactive_bytes += remaining;
  }
  if (!segment.expandable) {
    add(statistics_.inactive_split, small, inactive);
    add(statistics_.inactive_split_bytes, small, inactive_bytes);
  }
  block.state = State::kLive;
  block.requested = request.bytes;
  add(statistics_.allocation, small, 1);
  add(statistics_.allocated_bytes, small, block.bytes);
  add(statistics_.active, small, 1);
  add(statistics_.active_bytes, small, block.bytes);
  add(statistics_.requested_bytes, small, block.requested);
  if (block.bytes >= config_.max_split_bytes) statistics_.oversize_allocations.increase(1);
  return address;
}

// The lowest run of free and unmapped blocks that the request fits in, or that of a new segment.
AllocatorFromRules::Place AllocatorFromRules::range_for(const Request& request) {
  for (auto& [base, segment] : segments_) {
    if (!segment.expandable || segment.pool != request.pool || segment.stream != request.stream) continue;
    auto block = segment.blocks.begin();
    while (block != segment.blocks.end()) {
      const auto first = block;
      int64_t bytes = 0;
      bool grows = false;
      for (; block != segment.blocks.end(); ++block) {
        const State state = block->second.state;
        if (state != State::kFree && state != State::kUnmapped) break;
        bytes += block->second.bytes;
        grows = grows || state == State::kUnmapped;
      }
      if (grows && bytes >= request.size) return {&segment, first};
      if (block != segment.blocks.end()) ++block;
    }
  }
  Segment segment{request.pool, request.stream, true, 0, {}};
  segment.bytes = round_up(device_.total_bytes() + device_.total_bytes() / 8, page_of(segment));
  const uint64_t address = device_.reserve(segment.bytes);
  segment.blocks[address] = {segment.bytes, State::kUnmapped, 0, {}, {}, 0, 0};
  const auto made = segments_.emplace(address, std::move(segment)).first;
  return {&made->second, made->second.blocks.begin()};
}

std::optional<AllocatorFromRules::Place> AllocatorFromRules::expand(const Request& request) {
  Place place = range_for(request);
  if (place.block->second.state == State::kUnmapped) {
    const auto mapped = map_front(place, std::min(place.block->second.bytes, request.size));
    if (!mapped) return std::nullopt;
    place = *mapped;
  }
  while (place.block->second.bytes < request.size) {
    const auto next = std::next(place.block);
    const int64_t missing = request.size - place.block->second.bytes;
    const auto mapped = map_front({place.segment, next}, std::min(next->second.bytes, missing));
    if (!mapped) return std::nullopt;
    place = *mapped;
  }
  return place;
}

// Maps the first pages of an unmapped block; answers the free block they are then part of.
std::optional<AllocatorFromRules::Place> AllocatorFromRules::map_front(Place place, int64_t bytes) {
  Segment& segment = *place.segment;
  const int64_t page = page_of(segment);
  const int64_t mapped = round_up(bytes, page);
  if (!device_.map(place.block->first, mapped, page)) return std::nullopt;
  Block& block = place.block->second;
  if (mapped < block.bytes) {
    segment.blocks[behind(place.block->first, mapped)] = {block.bytes - mapped, State::kUnmapped, 0, {}, {}, 0, 0};
    block.bytes = mapped;
  }
  block.state = State::kFree;
  add(statistics_.reserved_bytes, segment.pool.small, mapped);
  ++statistics_.num_device_alloc;
  return Place{&segment, join(segment.blocks, place.block)};
}

// Merges a free or unmapped block with neighbours of the same state.
AllocatorFromRules::Blocks::iterator AllocatorFromRules::join(Blocks& blocks, Blocks::iterator block) {
  const auto next = std::next(block);
  if (next != blocks.end() && next->second.state == block->second.state) {
    block->second.bytes += next->second.bytes;
    blocks.erase(next);
  }
  if (block == blocks.begin()) return block;
  const auto previous = std::prev(block);
  if (previous->second.state != block->second.state) return block;
  previous->second.bytes += block->second.bytes;
  blocks.erase(block);
  return previous;
}

void AllocatorFromRules::free(uint64_t address) {
  const Place place = find(address);
  Block& block = place.block->second;
  const bool small = place.segment->pool.small;
  add(statistics_.allocation, small, -1);
  add(statistics_.allocated_bytes, small, -block.bytes);
  if (block.bytes >= config_.max_split_bytes) statistics_.oversize_allocations.decrease(1);
  block.state = State::kWaiting;
  if (block.uses.empty()) {
    put_back(place);
  } else if (captures_ > 0) {
    deferred_.push_back(address);
  } else {
    record_events(address);
  }
}

void AllocatorFromRules::record_stream(uint64_t address, int64_t stream) {
  const Place place = find(address);
  if (stream == place.segment->stream) return;
  place.block->second.uses.insert(stream);
  if (captures_ > 0) place.block->second.uses_captured.insert(stream);
}

void AllocatorFromRules::record_events(uint64_t address) {
  const Place place = find(address);
  Block& block = place.block->second;
  for (const int64_t stream : block.uses) {
    events_[stream].push_back({device_.record_event(stream), address});
    ++block.events;
  }
  block.uses.clear();
  block.uses_captured.clear();
  if (block.events == 0) put_back(place);
}

void AllocatorFromRules::record_deferred() {
  for (const uint64_t address : std::exchange(deferred_, {})) {
    Block& block = find(address).block->second;
    for (const int64_t stream : block.uses_captured) block.uses.erase(stream);
    record_events(address);
  }
}

void AllocatorFromRules::process_events() {
  record_deferred();
  for (auto& [stream, events] : events_) {
    for (const Event& event : std::exchange(events, {})) {
      if (device_.is_done(event.event)) {
        event_is_done(event);
      } else {
        events.push_back(event);
      }
    }
  }
}

void AllocatorFromRules::synchronize() {
  ++statistics_.num_sync_all_streams;
  record_deferred();
  for (auto& [stream, events] : events_) {
    for (const Event& event : std::exchange(events, {})) {
      device_.wait(event.event);
      event_is_done(event);
    }
  }
}

void AllocatorFromRules::event_is_done(const Event& event) {
  const Place place = find(event.address);
  if (--place.block->second.events == 0) put_back(place);
}

void AllocatorFromRules::put_back(Place place) {
  Segment& segment = *place.segment;
  const bool small = segment.pool.small;
  Block& block = place.block->second;
  add(statistics_.active, small, -1);
  add(statistics_.active_bytes, small, -block.bytes);
  add(statistics_.requested_bytes, small, -block.requested);
  const int64_t freed = block.bytes;
  const auto blocks_before = static_cast<int64_t>(segment.blocks.size());
  block.state = State::kFree;
  block.requested = 0;
  const auto joined = join(segment.blocks, place.block);
  joined->second.cached_at = searches_[segment.pool];
  if (segment.expandable) return;
  const int64_t merged = blocks_before - static_cast<int64_t>(segment.blocks.size());
  const bool split = segment.blocks.size() > 1;
  const int64_t bytes = joined->second.bytes;
  add(statistics_.inactive_split, small, (split ? 1 : 0) - merged);
  add(statistics_.inactive_split_bytes, small, (split ? bytes : 0) - (bytes - freed));
}

void AllocatorFromRules::begin_pool(PoolId id, StreamFilter filter) {
  ++users_[id];
  begun_.insert(begun_.begin(), {id, std::move(filter)});
}

void AllocatorFromRules::end_pool(PoolId id) {
  std::erase_if(begun_, [&id](const auto& one) { return one.first == id; });
}

void AllocatorFromRules::release_pool(PoolId id) { --users_[id]; }

void AllocatorFromRules::empty_cache() { release_cached(); }

std::vector<uint64_t> AllocatorFromRules::unsplit_blocks(Pool pool) const {
  std::vector<uint64_t> addresses;
  for (const auto& [base, segment] : segments_) {
    if (segment.pool != pool || segment.expandable || segment.blocks.size() > 1) continue;
    if (segment.blocks.begin()->second.state == State::kFree) addresses.push_back(base);
  }
  return addresses;
}

void AllocatorFromRules::release_segment(uint64_t address) {
  const Segment& segment = segments_.at(address);
  device_.free(address, segment.bytes);
  add(statistics_.segment, segment.pool.small, -1);
  add(statistics_.reserved_bytes, segment.pool.small, -segment.bytes);
  if (segment.bytes >= config_.max_split_bytes) statistics_.oversize_segments.decrease(1);
  ++statistics_.num_device_free;
  segments_.erase(address);
}

void AllocatorFromRules::collect_garbage() {
  const auto threshold = static_cast<int64_t>(config_.garbage_collection_threshold * static_cast<double>(allowed()));
  const int64_t excess = reserved() - threshold;
  const Pool pool{{0, 0}, false};
  int64_t reclaimed = 0;
  while (reclaimed < excess) {
    const std::vector<uint64_t> addresses = unsplit_blocks(pool);
    if (addresses.empty()) return;
    const auto age = [&](uint64_t address) {
      return static_cast<double>(searches_[pool] - segments_.at(address).blocks.begin()->second.cached_at);
    };
    double sum = 0;
    for (const uint64_t address : addresses) sum += age(address);
    const double mean = sum / static_cast<double>(addresses.size());
    bool freed = false;
    for (const uint64_t address : addresses) {
      if (age(address) < mean) continue;
      reclaimed += segments_.at(address).bytes;
      release_segment(address);
      freed = true;
    }
    if (!freed) return;
  }
}

// Gives back the one block that is large enough, or the largest ones until they are together.
bool AllocatorFromRules::release_oversize(const Request& request) {
  const int64_t wanted = std::max(request.size, config_.max_split_bytes);
  std::vector<std::pair<int64_t, uint64_t>> blocks;
  for (const uint64_t address : unsplit_blocks(request.pool)) {
    const Segment& segment = segments_.at(address);
    if (segment.stream == request.stream && segment.bytes >= config_.max_split_bytes) {
      blocks.emplace_back(segment.bytes, address);
    }
  }
  std::sort(blocks.begin(), blocks.end());
  const auto enough = std::lower_bound(blocks.begin(), blocks.end(), std::pair{wanted, uint64_t{0}});
  if (enough != blocks.end()) {
    release_segment(enough->second);
    return true;
  }
  int64_t released = 0;
  for (; released < wanted && !blocks.empty(); blocks.pop_back()) {
    released += blocks.back().first;
    release_segment(blocks.back().second);
  }
  return released >= wanted;
}

void AllocatorFromRules::release_cached() {
  if (captures_ == 0) {
    synchronize();
    release_pool_memory({{0, 0}, false});
    release_pool_memory({{0, 0}, true});
  }
  for (const auto& [id, users] : users_) {
    if (users > 0) continue;
    release_pool_memory({id, true});
    release_pool_memory({id, false});
  }
}

void AllocatorFromRules::release_pool_memory(Pool pool) {
  for (const uint64_t address : unsplit_blocks(pool)) release_segment(address);
  std::vector<uint64_t> free_blocks;
  for (const auto& [base, segment] : segments_) {
    if (segment.pool != pool || !segment.expandable) continue;
    for (const auto& [address, block] : segment.blocks) {
      if (block.state == State::kFree) free_blocks.push_back(address);
    }
  }
  for (const uint64_t address : free_blocks) unmap_pages(find(address));
}

// Takes the memory from the whole pages of a free block; the addresses go when all of the segment is without memory.
void AllocatorFromRules::unmap_pages(Place place) {
  Segment& segment = *place.segment;
  const int64_t page = page_of(segment);
  const uint64_t base = segment.blocks.begin()->first;
  const uint64_t address = place.block->first;
  const auto offset = static_cast<int64_t>(address - base);
  const int64_t first = round_up(offset, page);
  const int64_t last = round_down(offset + place.block->second.bytes, page);
  if (first >= last) return;
  device_.unmap(behind(base, first), last - first, page, segment.stream);
  add(statistics_.reserved_bytes, segment.pool.small, first - last);
  ++statistics_.num_device_free;
  const Block whole = place.block->second;
  const int64_t end = offset + whole.bytes;
  segment.blocks.erase(place.block);
  if (offset < first) segment.blocks[address].bytes = first - offset;
  if (last < end) segment.blocks[behind(base, last)].bytes = end - last;
  const auto middle = segment.blocks.emplace(behind(base, first), Block{}).first;
  middle->second.bytes = last - first;
  middle->second.state = State::kUnmapped;
  join(segment.blocks, middle);
  if (segment.blocks.size() > 1) return;
  device_.unreserve(base, segment.bytes);
  segments_.erase(base);
}

void AllocatorFromRules::reset_peaks() {
  for_each(statistics_, [](Statistic& one) { one.peak = one.current; });
}

void AllocatorFromRules::reset_accumulated() {
  for_each(statistics_, [](Statistic& one) { one.allocated = one.freed = 0; });
  for (int64_t* counter : {&statistics_.num_alloc_retries, &statistics_.num_ooms, &statistics_.num_sync_all_streams,
                           &statistics_.num_device_alloc, &statistics_.num_device_free}) {
    *counter = 0;
  }
}

std::string AllocatorFromRules::picture() const {
  static constexpr const char* kNames[] = {" live\n", " waiting\n", " free\n"};
  std::string text;
  for (const auto& [base, segment] : segments_) {
    uint64_t start = base;
    for (const auto& [address, block] : segment.blocks) {
      if (block.state == State::kUnmapped) {
        start = behind(address, block.bytes);  // each range with memory is shown as a segment
        continue;
      }
      text += std::to_string(start) + " " + std::to_string(address) + " " + std::to_string(block.bytes) + " " +
              std::to_string(block.requested) + kNames[static_cast<size_t>(block.state)];
    }
  }
  return text;
}

}  // namespace fxopt
