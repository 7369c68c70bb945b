#include "runtime/run/host_memory.h"

#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <utility>

namespace fxopt {
namespace {

constexpr int64_t kAlignment = 512;
constexpr int64_t kAsked = int64_t{1} << 30;
constexpr int64_t kLargePage = int64_t{1} << 21;

// Returns the value of a line of /proc/meminfo, in bytes.
std::optional<int64_t> system_memory(std::string_view name) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name)) return std::strtoll(line.c_str() + name.size(), nullptr, 10) * 1024;
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> free_host_memory() { return system_memory("MemAvailable:"); }

HostBlock::HostBlock(int64_t bytes) {
  if (bytes <= 0) return;
  // Linux overcommits memory and may kill the process later. Free memory is therefore checked
  // before a large block is allocated.
  const std::optional<int64_t> free = bytes < kAsked ? std::nullopt : free_host_memory();
  if (bytes > INT64_MAX / 2 || (free.has_value() && bytes > *free)) return;
  const int64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  // Large blocks use large pages. With small pages, page faults take a third of the time of a first
  // run.
  const bool is_large = rounded >= 2 * kLargePage;
  const int64_t alignment = is_large ? kLargePage : kAlignment;
  const int64_t size = is_large ? (rounded + kLargePage - 1) / kLargePage * kLargePage : rounded;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(size))));
  if (data_ == nullptr) return;
  size_ = rounded;
#if defined(MADV_HUGEPAGE)
  if (is_large)
    // This call is only a hint, so a failure is harmless.
    madvise(data_.get(), static_cast<size_t>(size), MADV_HUGEPAGE);
#endif
}

void HostBlock::Free::operator()(std::byte* data) const { std::free(data); }

void* SystemAllocator::take(int64_t bytes) {
  HostBlock block(bytes);
  void* data = block.data();
  if (data != nullptr) blocks_.emplace(data, std::move(block));
  return data;
}

void SystemAllocator::give(void* block) { blocks_.erase(block); }

HostDevice::~HostDevice() {
  for (const auto& [address, bytes] : ranges_) munmap(pointer_of(address), static_cast<size_t>(bytes));
}

int64_t HostDevice::total_bytes() const { return system_memory("MemTotal:").value_or(INT64_MAX); }
int64_t HostDevice::free_bytes() const { return free_host_memory().value_or(INT64_MAX); }

std::optional<uint64_t> HostDevice::allocate(int64_t bytes) {
  HostBlock block(bytes);
  if (block.data() == nullptr) return std::nullopt;
  const uint64_t address = address_of(block.data());
  segments_.emplace(address, std::move(block));
  return address;
}
void HostDevice::free(uint64_t address, int64_t) { segments_.erase(address); }

uint64_t HostDevice::reserve(int64_t bytes) {
  void* range =
      mmap(nullptr, static_cast<size_t>(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) throw std::bad_alloc();
  ranges_.emplace(address_of(range), bytes);
  return address_of(range);
}
void HostDevice::unreserve(uint64_t address, int64_t bytes) {
  munmap(pointer_of(address), static_cast<size_t>(bytes));
  ranges_.erase(address);
}
bool HostDevice::map(uint64_t address, int64_t bytes, int64_t) {
  if (bytes > free_bytes()) return false;
  return mprotect(pointer_of(address), static_cast<size_t>(bytes), PROT_READ | PROT_WRITE) == 0;
}
void HostDevice::unmap(uint64_t address, int64_t bytes, int64_t, int64_t) {
  madvise(pointer_of(address), static_cast<size_t>(bytes), MADV_DONTNEED);
  mprotect(pointer_of(address), static_cast<size_t>(bytes), PROT_NONE);
}

void* CachingHostAllocator::take(int64_t bytes) { return pointer_of(allocator_.allocate(bytes, 0).value_or(0)); }
void CachingHostAllocator::give(void* block) { allocator_.free(address_of(block)); }
int64_t CachingHostAllocator::reserved_peak() const {
  return allocator_.statistics().reserved_bytes[static_cast<size_t>(PoolKind::kAll)].peak;
}

}  // namespace fxopt
