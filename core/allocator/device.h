#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace fxopt {

// What the allocator needs of a device: the CUDA runtime, or SimulatedDevice. Addresses are never 0; sizes are in bytes
// and above 0. Out of memory is an answer (nullopt, false); any other failure is the implementation's to throw.
class AllocatorDevice {
 public:
  virtual ~AllocatorDevice() = default;

  virtual int64_t total_bytes() const = 0;
  virtual int64_t free_bytes() const = 0;

  // Memory with an address, and its end: cudaMalloc and cudaFree.
  virtual std::optional<uint64_t> allocate(int64_t bytes) = 0;
  virtual void free(uint64_t address, int64_t bytes) = 0;

  // Addresses without memory: cuMemAddressReserve and cuMemAddressFree.
  virtual uint64_t reserve(int64_t bytes) = 0;
  virtual void unreserve(uint64_t address, int64_t bytes) = 0;

  // Memory behind whole pages of reserved addresses. `map` does all of the range or nothing. `unmap` waits until
  // `stream`, the one the range was allocated for, has done its work. The range may cover several earlier ones.
  virtual bool map(uint64_t address, int64_t bytes, int64_t page_bytes) = 0;
  virtual void unmap(uint64_t address, int64_t bytes, int64_t page_bytes, int64_t stream) = 0;

  // Events: a mark behind all work given to a stream so far. Each is asked about until it is done, or waited for once.
  virtual uint64_t record_event(int64_t stream) = 0;
  virtual bool is_done(uint64_t event) = 0;
  virtual void wait(uint64_t event) = 0;

  // The streams on which events may have become done since the last call, each once, in ascending order; nothing where
  // the device cannot tell, and it may be any.
  virtual std::optional<std::vector<int64_t>> take_finished_streams() { return std::nullopt; }
};

}  // namespace fxopt
