// judge [FIRST] COUNT [FILE]: gives random traces to PyTorch's own CUDA caching allocator (on a
// device that is only numbers) and to the second model of its rules. Both must agree on every
// address and statistic after each operation. The model agrees with fxopt's allocator in turn:
// tests/core/allocator_property_test.cpp. One process per trace.
// FILE gets a line for each trace: Duel::digest(), or "-" if they disagree.

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDAAllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/cuda/PeerToPeerAccess.h>

#include "scripts/peers/allocator/fake_cuda.h"
#include "tests/core/allocator_trace.h"

// Exported, and declared in a header that installations omit.
namespace c10::cuda::_internal {
void setHasPrimaryContext(bool (*has)(c10::DeviceIndex));
}

namespace fxopt {
namespace {

namespace torch_cuda = c10::cuda::CUDACachingAllocator;

std::string settings_of(const AllocatorConfig& config) {
  const auto megabytes = [](int64_t bytes) { return std::to_string(bytes >> 20); };
  std::string text = "large_segment_size_mb:" + megabytes(config.large_segment_bytes);
  text += ",max_non_split_rounding_mb:" + megabytes(config.max_non_split_rounding_bytes);
  if (config.max_split_bytes != AllocatorConfig::kUnlimited) {
    text += ",max_split_size_mb:" + megabytes(config.max_split_bytes);
  }
  if (config.garbage_collection_threshold > 0) {
    text += ",garbage_collection_threshold:" + std::to_string(config.garbage_collection_threshold);
  }
  if (config.expandable_segments) text += ",expandable_segments:True";
  text += ",roundup_power2_divisions:[";
  for (size_t i = 0; i < config.roundup_power2_divisions.size(); ++i) {
    if (i > 0) text += ",";
    text += std::to_string(uint64_t{1} << i) + ":" + std::to_string(config.roundup_power2_divisions[i]);
  }
  return text + "]";
}

// Adapts PyTorch's allocator to the interface of ours.
class TorchAllocator {
  using PoolId = std::pair<int64_t, int64_t>;

 public:
  TorchAllocator(SimulatedDevice& device, const AllocatorConfig& config) {
    use_device(device);
    c10::CachingAllocator::setAllocatorSettings(settings_of(config));
    torch_cuda::init(1);
    c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
    torch_cuda::CUDAAllocatorConfig::set_expandable_segments_handle_type(
        // otherwise it looks for NVLink fabrics
        torch_cuda::Expandable_Segments_Handle_Type::POSIX_FD);
    c10::cuda::detail::init_p2p_access_cache(1);
    torch_cuda::setMemoryFraction(config.memory_fraction, 0);
  }

  std::optional<uint64_t> allocate(int64_t bytes, int64_t stream) {
    if (bytes > int64_t{1} << 60) return std::nullopt;  // refused one layer above this one
    try {
      return reinterpret_cast<uint64_t>(
          torch_cuda::raw_alloc_with_stream(static_cast<size_t>(bytes), stream_of(stream)));
    } catch (const c10::OutOfMemoryError&) {
      return std::nullopt;
    }
  }

  void free(uint64_t address) { torch_cuda::raw_delete(reinterpret_cast<void*>(address)); }

  void record_stream(uint64_t address, int64_t stream) {
    void* pointer = reinterpret_cast<void*>(address);
    c10::DataPtr data(pointer, pointer, torch_cuda::get()->raw_deleter(), c10::Device(c10::kCUDA, 0));
    torch_cuda::recordStream(data, c10::cuda::getStreamFromExternal(stream_of(stream), 0));
    data.release_context();
  }

  void begin_pool(PoolId id, std::function<bool(int64_t)> filter) {
    torch_cuda::beginAllocateToPool(0, to_torch(id), [filter](cudaStream_t stream) {
      return filter(static_cast<int64_t>(reinterpret_cast<uint64_t>(stream) >> 12));
    });
  }
  void end_pool(PoolId id) { torch_cuda::endAllocateToPool(0, to_torch(id)); }
  void begin_capture() {
    torch_cuda::markCaptureBegin(0);
    ++captures();
  }
  void end_capture() {
    torch_cuda::markCaptureEnd(0);
    --captures();
  }
  void release_pool(PoolId id) { torch_cuda::releasePool(0, to_torch(id)); }
  void empty_cache() { torch_cuda::emptyCache(); }
  void reset_peaks() { torch_cuda::resetPeakStats(0); }
  void reset_accumulated() { torch_cuda::resetAccumulatedStats(0); }

  AllocatorStatistics statistics() const {
    const auto theirs = torch_cuda::getDeviceStats(0);
    AllocatorStatistics ours;
    const auto copy = [](const auto& from, StatisticByPool& to) {
      for (size_t i = 0; i < to.size(); ++i) to[i] = one(from[i]);
    };
    copy(theirs.allocation, ours.allocation);
    copy(theirs.segment, ours.segment);
    copy(theirs.active, ours.active);
    copy(theirs.inactive_split, ours.inactive_split);
    copy(theirs.allocated_bytes, ours.allocated_bytes);
    copy(theirs.reserved_bytes, ours.reserved_bytes);
    copy(theirs.active_bytes, ours.active_bytes);
    copy(theirs.inactive_split_bytes, ours.inactive_split_bytes);
    copy(theirs.requested_bytes, ours.requested_bytes);
    ours.oversize_allocations = one(theirs.oversize_allocations);
    ours.oversize_segments = one(theirs.oversize_segments);
    ours.num_alloc_retries = theirs.num_alloc_retries;
    ours.num_ooms = theirs.num_ooms;
    ours.num_sync_all_streams = theirs.num_sync_all_streams;
    ours.num_device_alloc = theirs.num_device_alloc;
    ours.num_device_free = theirs.num_device_free;
    return ours;
  }

  struct Block {
    uint64_t address;
    int64_t bytes;
    int64_t requested_bytes;
    int state;  // a BlockState
  };
  struct Segment {
    uint64_t address;
    std::vector<Block> blocks;
  };
  std::vector<Segment> snapshot() const {
    std::vector<Segment> segments;
    for (const auto& segment : torch_cuda::snapshot().segments) {
      Segment& copy = segments.emplace_back();
      uint64_t address = copy.address = segment.address;
      for (const auto& block : segment.blocks) {
        const int state = block.allocated ? 0 : block.active ? 1 : 2;
        const auto requested = state == 2 ? 0 : static_cast<int64_t>(block.requested_size);
        copy.blocks.push_back({address, static_cast<int64_t>(block.size), requested, state});
        address += block.size;
      }
    }
    return segments;
  }

 private:
  static c10::MempoolId_t to_torch(PoolId id) {
    return {static_cast<c10::CaptureId_t>(id.first), static_cast<c10::CaptureId_t>(id.second)};
  }
  template <class Stat>
  static Statistic one(const Stat& stat) {
    return {stat.current, stat.peak, stat.allocated, stat.freed};
  }
};

int run_trace(uint64_t seed, const char* record) {
  Duel<TorchAllocator> duel(seed);
  const std::string why = duel.run();
  if (record != nullptr) {
    std::ofstream file(record, std::ios::app);
    why.empty() ? file << std::hex << duel.digest() << "\n" : file << "-\n";
  }
  if (why.empty()) return 0;
  std::cout << "seed " << seed << " " << settings_of(duel.config()) << "\n" << why << std::endl;
  return 1;
}

}  // namespace
}  // namespace fxopt

int main(int argc, char** argv) {
  const uint64_t first = argc > 2 ? std::strtoull(argv[1], nullptr, 10) : 0;
  const uint64_t count = argc > 1 ? std::strtoull(argv[argc > 2 ? 2 : 1], nullptr, 10) : 1000;
  const char* record = argc > 3 ? argv[3] : nullptr;
  uint64_t disagreed = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const pid_t child = fork();
    if (child == 0) _exit(fxopt::run_trace(seed, record));
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) {
      ++disagreed;
      std::cout << "seed " << seed << " ended with status " << status << std::endl;
    }
  }
  std::cout << count << " traces, " << disagreed << " disagree\n";
  return disagreed == 0 ? 0 : 1;
}
