#include "core/allocator/simulated_device.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace fxopt {
namespace {

constexpr uint64_t kLastAddress = uint64_t{1} << 53;  // snapshot viewers read addresses as binary64

int64_t whole_pages(int64_t bytes) {
  constexpr int64_t page = SimulatedDevice::kPageBytes;
  return bytes / page * page + (bytes % page != 0 ? page : 0);
}

}  // namespace

SimulatedDevice::SimulatedDevice(int64_t total_bytes, int64_t other_bytes)
    : total_bytes_(total_bytes), free_bytes_(total_bytes - other_bytes) {
  FXOPT_CHECK(other_bytes >= 0 && other_bytes <= total_bytes, "other_bytes is negative or above total_bytes");
}

std::optional<uint64_t> SimulatedDevice::allocate(int64_t bytes) {
  if (!take_memory(bytes)) return std::nullopt;
  return take_addresses(bytes);
}

void SimulatedDevice::free(uint64_t, int64_t bytes) {
  free_bytes_ += whole_pages(bytes);
  FXOPT_CHECK(free_bytes_ <= total_bytes_, "more memory is freed than was allocated");
}

uint64_t SimulatedDevice::reserve(int64_t bytes) { return take_addresses(bytes); }

void SimulatedDevice::unreserve(uint64_t, int64_t) {}

bool SimulatedDevice::map(uint64_t, int64_t bytes, int64_t page_bytes) {
  FXOPT_CHECK(bytes % page_bytes == 0, "the size to map is not a multiple of the page size");
  return take_memory(bytes / page_bytes * whole_pages(page_bytes));
}

void SimulatedDevice::unmap(uint64_t address, int64_t bytes, int64_t page_bytes, int64_t stream) {
  FXOPT_CHECK(bytes % page_bytes == 0, "the size to unmap is not a multiple of the page size");
  finish(stream);
  free(address, bytes / page_bytes * whole_pages(page_bytes));
}

uint64_t SimulatedDevice::record_event(int64_t stream) {
  stream_of_event_.emplace(next_event_, stream);
  return next_event_++;
}

bool SimulatedDevice::is_done(uint64_t event) {
  const auto found = stream_of_event_.find(event);
  if (found == stream_of_event_.end()) return true;
  const auto finished = finished_up_to_.find(found->second);
  if (finished == finished_up_to_.end() || event >= finished->second) return false;
  stream_of_event_.erase(found);
  return true;
}

void SimulatedDevice::wait(uint64_t event) {
  const auto found = stream_of_event_.find(event);
  if (found != stream_of_event_.end() && !is_done(event)) {
    finished_up_to_[found->second] = event + 1;
    finished_.push_back(found->second);
  }
  stream_of_event_.erase(event);
}

std::optional<std::vector<int64_t>> SimulatedDevice::take_finished_streams() {
  std::sort(finished_.begin(), finished_.end());
  finished_.erase(std::unique(finished_.begin(), finished_.end()), finished_.end());
  return std::exchange(finished_, {});
}

void SimulatedDevice::finish(int64_t stream) {
  finished_up_to_[stream] = next_event_;
  finished_.push_back(stream);
}

uint64_t SimulatedDevice::take_addresses(int64_t bytes) {
  const uint64_t address = next_address_;
  FXOPT_CHECK(static_cast<uint64_t>(bytes) < kLastAddress - address, "the simulated device has no addresses left");
  next_address_ += static_cast<uint64_t>(whole_pages(bytes));
  return address;
}

bool SimulatedDevice::take_memory(int64_t bytes) {
  if (bytes > free_bytes_ || whole_pages(bytes) > free_bytes_) return false;
  free_bytes_ -= whole_pages(bytes);
  return true;
}

}  // namespace fxopt
