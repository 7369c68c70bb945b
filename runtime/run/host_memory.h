#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "core/allocator/caching_allocator.h"
#include "core/allocator/device.h"

namespace fxopt {

// Returns the bytes that the system can provide without reclaiming memory from other programs.
// Returns nullopt if the number is unknown.
std::optional<int64_t> free_host_memory();

// These functions convert pointers to the addresses that allocators and devices use, and back.
inline void* pointer_of(uint64_t address) { return reinterpret_cast<void*>(address); }
inline uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// The memory of one block, aligned to 512 bytes. The block is empty if memory ran out.
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

// Provides blocks of memory, which are allocated and freed while a training step runs.
class HostAllocator {
 public:
  virtual ~HostAllocator() = default;
  // Returns null if memory ran out, or if `bytes` is 0.
  virtual void* take(int64_t bytes) = 0;
  // Frees a block that take() returned. Null is ignored.
  virtual void give(void* block) = 0;
  // Returns the peak of the bytes of blocks that are in use or cached. Returns 0 if the allocator
  // has no cache.
  virtual int64_t reserved_peak() const = 0;
};

// Takes each block from the system, so that memory debuggers see each block.
class SystemAllocator final : public HostAllocator {
 public:
  void* take(int64_t bytes) override;
  void give(void* block) override;
  int64_t reserved_peak() const override { return 0; }

 private:
  std::unordered_map<void*, HostBlock> blocks_;
};

// Gives the caching allocator the machine's memory in place of a GPU's memory. Work has ended when
// a call returns, so every event is complete as soon as it is recorded.
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
  uint64_t record_event(int64_t) override { return 1; }
  bool is_done(uint64_t) override { return true; }
  void wait(uint64_t) override {}

 private:
  std::unordered_map<uint64_t, HostBlock> segments_;
  std::unordered_map<uint64_t, int64_t> ranges_;  // bytes of each reserved range, by address
};

// PyTorch's CUDA caching allocator over the machine's memory. `fxopt mem` simulates the same
// allocator. Here, it provides the memory of a run.
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
