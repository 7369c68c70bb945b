#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "core/allocator/caching_allocator.h"
#include "core/allocator/device.h"

namespace fxopt {

// Returns the bytes that the system can provide without reclaiming memory from other programs, or
// nullopt if unknown.
std::optional<int64_t> free_host_memory();

// Addresses in the form of the allocator and of devices.
inline void* pointer_of(uint64_t address) { return reinterpret_cast<void*>(address); }
inline uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// Memory of one block, aligned to 512 bytes; empty if memory ran out.
class HostBlock {
 public:
  HostBlock() = default;
  explicit HostBlock(int64_t bytes);
  std::byte* data() const { return data_.get(); }
  int64_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  int64_t size_ = 0;
};

// Provides blocks that are allocated and freed while a step runs.
class HostAllocator {
 public:
  virtual ~HostAllocator() = default;
  // Returns null if memory ran out, and for 0 bytes.
  virtual void* take(int64_t bytes) = 0;
  // Frees a block that take() returned; null is ignored.
  virtual void give(void* block) = 0;
  // Returns the peak bytes of blocks in use and cached; 0 if nothing is cached.
  virtual int64_t reserved_peak() const = 0;
};

// Takes each block from the system, so that memory debuggers see it.
class SystemAllocator final : public HostAllocator {
 public:
  void* take(int64_t bytes) override;
  void give(void* block) override;
  int64_t reserved_peak() const override { return 0; }

 private:
  std::unordered_map<void*, HostBlock> blocks_;
};

// The machine's memory as a device of the caching allocator. Work ends when the call returns: an
// event is done at once.
class HostDevice final : public AllocatorDevice {
 public:
  ~HostDevice() override;
  int64_t total_bytes() const override;
  int64_t free_bytes() const override;
  std::optional<uint64_t> allocate(int64_t bytes) override;
  void free(uint64_t address, int64_t bytes) override;
  uint64_t reserve(int64_t bytes) override;
  void unreserve(uint64_t address, int64_t bytes) override;
  bool map(uint64_t address, int64_t bytes, int64_t page_bytes) override;
  void unmap(uint64_t address, int64_t bytes, int64_t page_bytes, int64_t stream) override;
  uint64_t record_event(int64_t stream) override;
  bool is_done(uint64_t event) override;
  void wait(uint64_t event) override;

 private:
  std::unordered_map<uint64_t, HostBlock> segments_;
  std::unordered_map<uint64_t, int64_t> ranges_;  // reserved addresses: bytes
};

// PyTorch's CUDA caching allocator over the machine's memory: the allocator that `fxopt mem`
// simulates, serving a run.
class CachingHostAllocator final : public HostAllocator {
 public:
  explicit CachingHostAllocator(const AllocatorConfig& config) : allocator_(device_, config) {}
  void* take(int64_t bytes) override;
  void give(void* block) override;
  int64_t reserved_peak() const override;

 private:
  HostDevice device_;
  CachingAllocator allocator_;
};

}  // namespace fxopt
