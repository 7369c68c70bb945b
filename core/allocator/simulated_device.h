#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/allocator/device.h"

namespace fxopt {

// A device that has no memory and only keeps addresses and counts. Addresses start at
// 0x7f0000000000, are multiples of 2 MiB, grow with each call and are never reused. Among free
// blocks of equal size, the allocator takes the block at the lowest address. The order of addresses
// on a real device cannot be predicted, so the allocator may take another block on a real device.
// The simulated device counts memory in whole pages of 2 MiB, like the CUDA driver. Every call is
// O(1), except take_finished_streams(). After n calls of finish(), unmap() and wait(),
// take_finished_streams() is O(n log n).
class SimulatedDevice final : public AllocatorDevice {
 public:
  static constexpr int64_t kPageBytes = int64_t{2} << 20;
  static constexpr uint64_t kFirstAddress = 0x7f0000000000;

  // `total_bytes` is the size of the device's memory. `other_bytes` is the part that the CUDA
  // context, NCCL and other users outside the allocator take.
  explicit SimulatedDevice(int64_t total_bytes, int64_t other_bytes = 0);

  int64_t total_bytes() const override { return total_bytes_; }
  int64_t free_bytes() const override { return free_bytes_; }
  std::optional<uint64_t> allocate(int64_t bytes) override;
  void free(uint64_t address, int64_t bytes) override;
  uint64_t reserve(int64_t bytes) override;
  void unreserve(uint64_t address, int64_t bytes) override;
  bool map(uint64_t address, int64_t bytes, int64_t page_bytes) override;
  void unmap(uint64_t address, int64_t bytes, int64_t page_bytes, int64_t stream) override;
  uint64_t record_event(int64_t stream) override;
  bool is_done(uint64_t event) override;
  void wait(uint64_t event) override;
  std::optional<std::vector<int64_t>> take_finished_streams() override;

  // Treats all work and events that were queued on `stream` before this call as done.
  void finish(int64_t stream);

 private:
  uint64_t take_addresses(int64_t bytes);
  bool take_memory(int64_t bytes);

  int64_t total_bytes_;
  int64_t free_bytes_;
  uint64_t next_address_ = kFirstAddress;
  uint64_t next_event_ = 1;
  std::unordered_map<uint64_t, int64_t> stream_of_event_;  // events that may not be done yet
  // For each stream, a limit for event numbers. Every event of the stream with a number below this
  // limit is done.
  std::unordered_map<int64_t, uint64_t> finished_up_to_;
  std::vector<int64_t> finished_;  // streams that finished since the last take_finished_streams()
};

}  // namespace fxopt
