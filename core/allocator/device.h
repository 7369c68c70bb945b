#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace fxopt {

// The allocator's interface to a device: the CUDA runtime, or SimulatedDevice. Addresses are never
// 0. Sizes are in bytes and above 0. Running out of memory is a result (nullopt, false); for any
// other failure the implementation throws.
class AllocatorDevice {
 public:
  virtual ~AllocatorDevice() = default;

  virtual int64_t total_bytes() const = 0;
  virtual int64_t free_bytes() const = 0;

  // Addresses with memory: cudaMalloc and cudaFree.
  virtual std::optional<uint64_t> allocate(int64_t bytes) = 0;
  virtual void free(uint64_t address, int64_t bytes) = 0;

  // Addresses without memory: cuMemAddressReserve and cuMemAddressFree.
  virtual uint64_t reserve(int64_t bytes) = 0;
  virtual void unreserve(uint64_t address, int64_t bytes) = 0;

  // Memory for whole pages of reserved addresses. `map` maps all of the range or nothing. `unmap`
  // waits until the work of `stream`, for which the range was allocated, is done. The range may
  // cover several mapped ranges.
  virtual bool map(uint64_t address, int64_t bytes, int64_t page_bytes) = 0;
  virtual void unmap(uint64_t address, int64_t bytes, int64_t page_bytes, int64_t stream) = 0;

  // An event marks the end of all work queued on a stream so far. Each is queried until it is done,
  // or waited for once.
  virtual uint64_t record_event(int64_t stream) = 0;
  virtual bool is_done(uint64_t event) = 0;
  virtual void wait(uint64_t event) = 0;

  // Returns the streams on which events may have completed since the last call, each once, in
  // ascending order. Returns nullopt if the device cannot tell; events may then be complete on any
  // stream.
  virtual std::optional<std::vector<int64_t>> take_finished_streams() { return std::nullopt; }
};

}  // namespace fxopt
