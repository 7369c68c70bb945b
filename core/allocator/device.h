#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace fxopt {

// The allocator's interface to a device. The device is the CUDA runtime or a SimulatedDevice.
// Addresses are never 0. Sizes are in bytes and above 0. If memory runs out, a function returns
// nullopt or false. For any other failure, the implementation throws an exception.
class AllocatorDevice {
 public:
  virtual ~AllocatorDevice() = default;

  virtual int64_t total_bytes() const = 0;
  virtual int64_t free_bytes() const = 0;

  // allocate() reserves addresses, maps memory to them and returns the first address, like
  // cudaMalloc. free() releases the addresses and the memory of one call of allocate(), like
  // cudaFree.
  virtual std::optional<uint64_t> allocate(int64_t bytes) = 0;
  virtual void free(uint64_t address, int64_t bytes) = 0;

  // reserve() reserves addresses without memory, like cuMemAddressReserve, and returns the first
  // address. unreserve() releases the addresses of one call of reserve(), like cuMemAddressFree.
  virtual uint64_t reserve(int64_t bytes) = 0;
  virtual void unreserve(uint64_t address, int64_t bytes) = 0;

  // map() adds memory to reserved addresses, and unmap() removes this memory. Both functions work
  // on whole pages. map() maps the whole range or nothing. unmap() first waits until the work on
  // `stream` is done. `stream` is the stream for which the range was allocated. The range of
  // unmap() may cover several mapped ranges.
  virtual bool map(uint64_t address, int64_t bytes, int64_t page_bytes) = 0;
  virtual void unmap(uint64_t address, int64_t bytes, int64_t page_bytes, int64_t stream) = 0;

  // An event marks the end of all work queued on a stream so far. The allocator queries an event
  // until the event is done, or waits once for the event.
  virtual uint64_t record_event(int64_t stream) = 0;
  virtual bool is_done(uint64_t event) = 0;
  virtual void wait(uint64_t event) = 0;

  // Returns the streams on which events may have completed since the last call. The list is in
  // ascending order and has no duplicates. Returns nullopt if the device cannot tell which streams
  // these are. In that case, events may be complete on any stream.
  virtual std::optional<std::vector<int64_t>> take_finished_streams() { return std::nullopt; }
};

}  // namespace fxopt
