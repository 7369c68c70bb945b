#include "tests/core/allocator_model.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "tests/units.h"

namespace fxopt {
namespace {

size_t index_of(bool small) { return small ? 1 : 2; }

}  // namespace

AllocatorModel::AllocatorModel(AllocatorDevice& device, const AllocatorConfig& config)
    : device_(device), config_(config) {}

// ---- sizes

int64_t AllocatorModel::rounded(int64_t bytes) const {
  if (bytes < 512) return 512;
  int64_t power = 1;  // the largest power of two within `bytes`
  while (power * 2 <= bytes) power *= 2;
  size_t bucket = 0;
  for (int64_t edge = 2 * kMiB; edge <= power && bucket < 15; edge *= 2) ++bucket;
  const int64_t divisions = config_.roundup_power2_divisions[bucket];
  int64_t step = 512;
  if (divisions > 1 && bytes > 512 * divisions) {
    if (power == bytes) return bytes;
    step = power / divisions;
    if (step == 0) return power * 2;
  }
  return bytes % step == 0 ? bytes : bytes - bytes % step + step;
}

int64_t AllocatorModel::new_segment_bytes(int64_t bytes) const {
  if (bytes <= kMiB) return 2 * kMiB;
  if (bytes < 10 * kMiB) return config_.large_segment_bytes;
  return (bytes + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB);
}

int64_t AllocatorModel::page(const Pool& pool) const { return pool.second ? 2 * kMiB : config_.large_segment_bytes; }

int64_t AllocatorModel::allowed() const {
  return static_cast<int64_t>(config_.memory_fraction * static_cast<double>(device_.total_bytes()));
}

// ---- the list

size_t AllocatorModel::find(uint64_t address) const {
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (pieces_[i].address == address) return i;
  }
  throw std::logic_error("the model has no piece at this address");
}

bool AllocatorModel::same_segment(size_t a, size_t b) const {
  return a < pieces_.size() && b < pieces_.size() && pieces_[a].segment == pieces_[b].segment;
}

bool AllocatorModel::alone(size_t at) const {
  return !(at > 0 && same_segment(at - 1, at)) && !same_segment(at, at + 1);
}

void AllocatorModel::cut(size_t at, int64_t bytes) {
  Piece rest = pieces_[at];
  rest.address += static_cast<uint64_t>(bytes);
  rest.bytes -= bytes;
  pieces_[at].bytes = bytes;
  pieces_.insert(pieces_.begin() + static_cast<std::ptrdiff_t>(at) + 1, rest);
}

// Merges neighbours in a segment that are both free, or both without memory. The merged piece gets
// the newer age: it is as young as the piece freed last.
void AllocatorModel::join(uint64_t segment) {
  for (size_t i = 0; i + 1 < pieces_.size();) {
    Piece& low = pieces_[i];
    const Piece& high = pieces_[i + 1];
    const bool joins = low.segment == segment && high.segment == segment && low.state == high.state &&
                       (low.state == State::kFree || low.state == State::kHole);
    if (!joins) {
      ++i;
      continue;
    }
    low.bytes += high.bytes;
    low.born = std::max(low.born, high.born);
    pieces_.erase(pieces_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
}

int64_t& AllocatorModel::searches(const Pool& pool) {
  for (auto& [key, count] : searches_) {
    if (key == pool) return count;
  }
  return searches_.emplace_back(pool, 0).second;
}

// ---- requests

AllocatorModel::Pool AllocatorModel::choose_pool(int64_t bytes, int64_t stream) const {
  Pool pool{{0, 0}, bytes <= kMiB};
  for (const auto& [id, filter] : routes_) {
    if (filter(stream)) pool.first = id;
  }
  return pool;
}

std::optional<uint64_t> AllocatorModel::allocate(int64_t bytes, int64_t stream) {
  if (bytes == 0) return 0;
  if (bytes > (int64_t{1} << 60)) return std::nullopt;
  if (captures_ == 0) poll();
  const int64_t size = rounded(bytes);
  const Pool pool = choose_pool(size, stream);
  std::optional<size_t> at = best_fit(size, stream, pool);
  if (!at.has_value()) at = last_resorts(size, stream, pool);
  if (!at.has_value()) {
    ++statistics_.num_ooms;
    return std::nullopt;
  }
  take(*at, size, bytes);
  return pieces_[*at].address;
}

// By size, then by address.
std::vector<size_t> AllocatorModel::free_pieces(int64_t stream, const Pool& pool) const {
  std::vector<size_t> found;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    if (piece.state == State::kFree && piece.stream == stream && piece.pool == pool) found.push_back(i);
  }
  std::stable_sort(found.begin(), found.end(),
                   [this](size_t a, size_t b) { return pieces_[a].bytes < pieces_[b].bytes; });
  return found;
}

std::optional<size_t> AllocatorModel::best_fit(int64_t bytes, int64_t stream, const Pool& pool) {
  if (collects()) ++searches(pool);
  std::vector<size_t> fits = free_pieces(stream, pool);
  std::erase_if(fits, [&](size_t i) { return pieces_[i].bytes < bytes; });
  if (fits.empty()) return std::nullopt;
  size_t choice = 0;
  if (config_.expandable_segments) {
    const auto weight = [&](size_t i) {
      const bool tail = same_segment(i, i + 1) && pieces_[i + 1].state == State::kHole;
      return pieces_[i].bytes + (tail ? pieces_[i + 1].bytes : 0);
    };
    while (choice + 1 < fits.size() && weight(fits[choice + 1]) < weight(fits[choice])) ++choice;
  }
  const int64_t found = pieces_[fits[choice]].bytes;
  const int64_t limit = config_.max_split_bytes;
  if (bytes < limit && found >= limit) return std::nullopt;
  if (bytes >= limit && found - bytes >= config_.max_non_split_rounding_bytes) return std::nullopt;
  return fits[choice];
}

void AllocatorModel::take(size_t at, int64_t bytes, int64_t requested) {
  const int64_t rest = pieces_[at].bytes - bytes;
  const bool fine = pieces_[at].pool.second || config_.expandable_segments;
  const bool splits = fine ? rest >= 512 : bytes < config_.max_split_bytes && rest > kMiB;
  if (splits) {
    cut(at, bytes);
    pieces_[at + 1].born = searches(pieces_[at].pool);
  }
  pieces_[at].state = State::kLive;
  pieces_[at].requested = requested;
  settle();
}

std::optional<size_t> AllocatorModel::last_resorts(int64_t bytes, int64_t stream, const Pool& pool) {
  if (collects()) collect();
  std::optional<size_t> at = grow(bytes, stream, pool);
  if (!at.has_value() && give_back_oversize(bytes, stream, pool)) at = grow(bytes, stream, pool);
  if (!at.has_value() && captures_ == 0) {
    give_back_all();
    ++statistics_.num_alloc_retries;
    at = grow(bytes, stream, pool);
  }
  return at;
}

std::optional<size_t> AllocatorModel::grow(int64_t bytes, int64_t stream, const Pool& pool) {
  const int64_t size = new_segment_bytes(bytes);
  if (config_.memory_fraction < 1 && total_reserved() + size > allowed()) return std::nullopt;
  if (config_.expandable_segments) return grow_range(bytes, stream, pool);
  const std::optional<uint64_t> address = device_.allocate(size);
  if (!address.has_value()) return std::nullopt;
  pieces_.push_back({*address, *address, size, stream, pool, State::kFree, 0, 0, {}, {}});  // addresses only grow
  ++statistics_.num_device_alloc;
  settle();
  return pieces_.size() - 1;
}

// ---- expandable segments

std::optional<size_t> AllocatorModel::grow_range(int64_t bytes, int64_t stream, const Pool& pool) {
  const size_t at = place_with_room(bytes, stream, pool);
  if (at == pieces_.size()) return std::nullopt;
  while (pieces_[at].state == State::kHole || pieces_[at].bytes < bytes) {
    const bool begins_in_hole = pieces_[at].state == State::kHole;
    const size_t hole = begins_in_hole ? at : at + 1;
    const int64_t missing = begins_in_hole ? bytes : bytes - pieces_[at].bytes;
    if (!map_at(hole, std::min(missing, pieces_[hole].bytes))) return std::nullopt;
  }
  return at;
}

size_t AllocatorModel::place_with_room(int64_t bytes, int64_t stream, const Pool& pool) {
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (pieces_[i].state != State::kHole || pieces_[i].stream != stream || pieces_[i].pool != pool) continue;
    const size_t first = i > 0 && same_segment(i - 1, i) && pieces_[i - 1].state == State::kFree ? i - 1 : i;
    int64_t room = 0;
    for (size_t k = first; same_segment(first, k); ++k) {
      if (pieces_[k].state != State::kFree && pieces_[k].state != State::kHole) break;
      room += pieces_[k].bytes;
    }
    if (room >= bytes) return first;
  }
  int64_t size = device_.total_bytes() + device_.total_bytes() / 8;
  if (size % page(pool) != 0) size += page(pool) - size % page(pool);
  if (size < bytes) return pieces_.size();
  const uint64_t address = device_.reserve(size);
  pieces_.push_back({address, address, size, stream, pool, State::kHole, 0, 0, {}, {}});
  return pieces_.size() - 1;
}

bool AllocatorModel::map_at(size_t at, int64_t bytes) {
  const int64_t quantum = page(pieces_[at].pool);
  const int64_t size = (bytes + quantum - 1) / quantum * quantum;
  if (!device_.map(pieces_[at].address, size, quantum)) return false;
  if (size < pieces_[at].bytes) cut(at, size);
  pieces_[at].state = State::kFree;
  ++statistics_.num_device_alloc;
  join(pieces_[at].segment);
  settle();
  return true;
}

void AllocatorModel::unmap_pages(uint64_t address) {
  size_t at = find(address);
  const uint64_t segment = pieces_[at].segment;
  const int64_t quantum = page(pieces_[at].pool);
  const int64_t begin = static_cast<int64_t>(pieces_[at].address - segment);
  const int64_t end = begin + pieces_[at].bytes;
  const int64_t first = begin % quantum == 0 ? begin : begin - begin % quantum + quantum;
  const int64_t last = end - end % quantum;
  if (last <= first) return;
  if (first > begin) cut(at++, first - begin);
  if (end > last) cut(at, last - first);
  device_.unmap(pieces_[at].address, last - first, quantum, pieces_[at].stream);
  pieces_[at].state = State::kHole;
  ++statistics_.num_device_free;
  join(segment);
  settle();
  const size_t range = find(segment);
  if (pieces_[range].state == State::kHole && alone(range)) {
    device_.unreserve(segment, pieces_[range].bytes);
    pieces_.erase(pieces_.begin() + static_cast<std::ptrdiff_t>(range));
  }
}

// ---- frees and streams

void AllocatorModel::free(uint64_t address) {
  if (address == 0) return;
  Piece& piece = pieces_[find(address)];
  piece.state = State::kWaiting;
  settle();
  if (piece.uses.empty()) {
    set_free(address);
  } else if (captures_ == 0) {
    watch(piece);
  } else {
    after_capture_.push_back(address);
  }
}

void AllocatorModel::set_free(uint64_t address) {
  Piece& piece = pieces_[find(address)];
  piece.state = State::kFree;
  piece.requested = 0;
  piece.uses.clear();
  piece.uses_in_capture.clear();
  piece.born = searches(piece.pool);
  join(piece.segment);
  settle();
}

void AllocatorModel::record_stream(uint64_t address, int64_t stream) {
  Piece& piece = pieces_[find(address)];
  if (stream == piece.stream) return;
  piece.uses.insert(stream);
  if (captures_ > 0) piece.uses_in_capture.insert(stream);
}

void AllocatorModel::watch(Piece& piece) {
  for (const int64_t stream : piece.uses) waiting_.push_back({stream, device_.record_event(stream), piece.address});
}

void AllocatorModel::mark_waiting() {
  const std::vector<uint64_t> addresses = std::move(after_capture_);
  after_capture_.clear();
  for (const uint64_t address : addresses) {
    Piece& piece = pieces_[find(address)];
    for (const int64_t stream : piece.uses_in_capture) piece.uses.erase(stream);
    if (piece.uses.empty()) {
      set_free(address);
    } else {
      watch(piece);
    }
  }
}

// Stream by stream, each in the order of its events and only up to the first that is not done.
void AllocatorModel::poll() {
  mark_waiting();
  std::set<int64_t> streams;
  for (const Waiting& one : waiting_) streams.insert(one.stream);
  for (const int64_t stream : streams) {
    while (true) {
      const auto first =
          std::find_if(waiting_.begin(), waiting_.end(), [stream](const Waiting& one) { return one.stream == stream; });
      if (first == waiting_.end() || !device_.is_done(first->event)) break;
      const uint64_t address = first->address;
      waiting_.erase(first);
      const bool last = std::none_of(waiting_.begin(), waiting_.end(),
                                     [address](const Waiting& one) { return one.address == address; });
      if (last) set_free(address);
    }
  }
}

void AllocatorModel::wait_for_all() {
  ++statistics_.num_sync_all_streams;
  mark_waiting();
  for (const Waiting& one : waiting_) device_.wait(one.event);
  poll();
}

// ---- releasing memory

int64_t AllocatorModel::total_reserved() const {
  int64_t sum = 0;
  for (const Piece& piece : pieces_) sum += piece.state != State::kHole ? piece.bytes : 0;
  return sum;
}

void AllocatorModel::release(uint64_t address) {
  const size_t at = find(address);
  device_.free(address, pieces_[at].bytes);
  pieces_.erase(pieces_.begin() + static_cast<std::ptrdiff_t>(at));
  ++statistics_.num_device_free;
  settle();
}

void AllocatorModel::collect() {
  if (config_.expandable_segments) return;
  const Pool pool{{0, 0}, false};
  const auto threshold = static_cast<int64_t>(config_.garbage_collection_threshold * static_cast<double>(allowed()));
  const int64_t goal = total_reserved() - threshold;
  for (int64_t reclaimed = 0; reclaimed < goal;) {
    std::vector<std::pair<uint64_t, int64_t>> candidates;  // address, age
    double total = 0;
    for (size_t i = 0; i < pieces_.size(); ++i) {
      if (pieces_[i].pool != pool || pieces_[i].state != State::kFree || !alone(i)) continue;
      candidates.emplace_back(pieces_[i].address, searches(pool) - pieces_[i].born);
      total += static_cast<double>(candidates.back().second);
    }
    if (candidates.empty()) return;
    const double mean = total / static_cast<double>(candidates.size());
    for (const auto& [address, age] : candidates) {
      if (static_cast<double>(age) < mean) continue;
      reclaimed += pieces_[find(address)].bytes;
      release(address);
    }
  }
}

bool AllocatorModel::give_back_oversize(int64_t bytes, int64_t stream, const Pool& pool) {
  if (config_.max_split_bytes == AllocatorConfig::kUnlimited || config_.expandable_segments) return false;
  const int64_t wanted = std::max(bytes, config_.max_split_bytes);
  std::vector<size_t> cached = free_pieces(stream, pool);
  for (const size_t i : cached) {
    if (pieces_[i].bytes < wanted) continue;
    release(pieces_[i].address);
    return true;
  }
  int64_t released = 0;
  while (released < wanted && !cached.empty() && pieces_[cached.back()].bytes >= config_.max_split_bytes) {
    released += pieces_[cached.back()].bytes;
    release(pieces_[cached.back()].address);
    cached = free_pieces(stream, pool);
  }
  return released >= wanted;
}

void AllocatorModel::give_back_pool(const Pool& pool) {
  std::vector<std::array<int64_t, 3>> order;  // stream, bytes, address
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    if (piece.pool != pool || piece.state != State::kFree) continue;
    if (config_.expandable_segments || alone(i)) {
      order.push_back({piece.stream, piece.bytes, static_cast<int64_t>(piece.address)});
    }
  }
  std::sort(order.begin(), order.end());
  for (const auto& [stream, bytes, address] : order) {
    if (config_.expandable_segments) {
      unmap_pages(static_cast<uint64_t>(address));
    } else {
      release(static_cast<uint64_t>(address));
    }
  }
}

void AllocatorModel::give_back_all() {
  if (captures_ == 0) {
    wait_for_all();
    give_back_pool({{0, 0}, false});
    give_back_pool({{0, 0}, true});
  }
  for (const Private& one : privates_) {
    if (one.users > 0) continue;
    give_back_pool({one.id, true});
    give_back_pool({one.id, false});
  }
}

void AllocatorModel::empty_cache() { give_back_all(); }

// ---- private pools

void AllocatorModel::begin_pool(std::pair<int64_t, int64_t> id, std::function<bool(int64_t)> filter) {
  routes_.emplace_back(id, std::move(filter));
  for (Private& one : privates_) {
    if (one.id != id) continue;
    ++one.users;
    return;
  }
  privates_.push_back({id, 1});
  std::sort(privates_.begin(), privates_.end(), [](const Private& a, const Private& b) { return a.id < b.id; });
}

void AllocatorModel::end_pool(std::pair<int64_t, int64_t> id) {
  std::erase_if(routes_, [&id](const auto& route) { return route.first == id; });
}

void AllocatorModel::release_pool(std::pair<int64_t, int64_t> id) {
  for (Private& one : privates_) {
    if (one.id == id) --one.users;
  }
}

// ---- statistics

AllocatorStatistics AllocatorModel::counted() const {
  AllocatorStatistics now;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    const auto add = [&](StatisticByPool& to, int64_t amount) {
      to[0].current += amount;
      to[index_of(piece.pool.second)].current += amount;
    };
    if (piece.state == State::kHole) continue;
    add(now.reserved_bytes, piece.bytes);
    if (piece.state == State::kLive) {
      add(now.allocation, 1);
      add(now.allocated_bytes, piece.bytes);
      now.oversize_allocations.current += piece.bytes >= config_.max_split_bytes ? 1 : 0;
    }
    if (piece.state != State::kFree) {
      add(now.active, 1);
      add(now.active_bytes, piece.bytes);
      add(now.requested_bytes, piece.requested);
    }
    if (config_.expandable_segments) continue;
    if (piece.state == State::kFree && !alone(i)) {
      add(now.inactive_split, 1);
      add(now.inactive_split_bytes, piece.bytes);
    }
    if (piece.segment != piece.address) continue;
    add(now.segment, 1);
    int64_t whole = 0;
    for (size_t k = i; same_segment(i, k); ++k) whole += pieces_[k].bytes;
    now.oversize_segments.current += whole >= config_.max_split_bytes ? 1 : 0;
  }
  return now;
}

void AllocatorModel::settle() {
  AllocatorStatistics now = counted();
  std::vector<int64_t> current;
  for_each(now, [&current](const Statistic& statistic) { current.push_back(statistic.current); });
  size_t next = 0;
  for_each(statistics_, [&](Statistic& statistic) {
    const int64_t difference = current[next++] - statistic.current;
    statistic.current += difference;
    statistic.peak = std::max(statistic.peak, statistic.current);
    (difference > 0 ? statistic.allocated : statistic.freed) += difference > 0 ? difference : -difference;
  });
}

void AllocatorModel::reset_peaks() {
  for_each(statistics_, [](Statistic& statistic) { statistic.peak = statistic.current; });
}

void AllocatorModel::reset_accumulated() {
  for_each(statistics_, [](Statistic& statistic) { statistic.allocated = statistic.freed = 0; });
  statistics_.num_alloc_retries = statistics_.num_ooms = statistics_.num_sync_all_streams = 0;
  statistics_.num_device_alloc = statistics_.num_device_free = 0;
}

std::string AllocatorModel::picture() const {
  std::string text;
  uint64_t start = 0;  // start of the stretch with memory
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    if (piece.state == State::kHole) continue;
    const bool continues = i > 0 && same_segment(i - 1, i) && pieces_[i - 1].state != State::kHole;
    if (!continues) start = piece.address;
    const char* state = piece.state == State::kLive ? " live" : piece.state == State::kFree ? " free" : " waiting";
    text += std::to_string(start) + " " + std::to_string(piece.address) + " " + std::to_string(piece.bytes) + " " +
            std::to_string(piece.requested) + state + "\n";
  }
  return text;
}

}  // namespace fxopt
