#include "ir/analysis/allocator_replay.h"

#include <vector>

#include "core/allocator/caching_allocator.h"
#include "core/allocator/simulated_device.h"

namespace fxopt {
namespace {

constexpr int64_t kNoLimit = int64_t{1} << 50;  // bytes; above any device, and addresses for it can be reserved
constexpr int64_t kStream = 0;

class Replayer {
 public:
  Replayer(const Graph& graph, const StorageMap& storages, const MemoryReport& memory, StringId device,
           const ReplayOptions& options)
      : graph_(graph),
        storages_(storages),
        memory_(memory),
        name_(device),
        device_(options.device_bytes.value_or(kNoLimit)),
        allocator_(device_, options.config),
        addresses_(storages.num_buffers()) {}

  AllocatorReplay run() {
    schedule();
    if (allocate_inputs()) {
      for (const NodeId node : graph_.nodes()) {
        if (!step(node)) break;
      }
    }
    result_.statistics = allocator_.statistics();
    return result_;
  }

 private:
  // Which buffers begin and end at each place of the schedule, each list by buffer.
  void schedule() {
    begins_.resize(graph_.num_nodes());
    ends_.resize(graph_.num_nodes());
    for (const Lifetime& life : memory_.lifetimes) {
      const Buffer& buffer = storages_.buffer(life.buffer);
      if (buffer.device != name_ || life.bytes == 0) continue;
      if (buffer.source == BufferSource::kNode) {
        begins_[life.first].push_back(life.buffer);
      } else {
        inputs_.push_back(life.buffer);
      }
      ends_[life.last].push_back(life.buffer);
    }
  }

  bool allocate_inputs() {
    for (const BufferId id : inputs_) {
      if (allocate(id)) continue;
      result_.fits_inputs = false;
      result_.out_of_memory = storages_.buffer(id).producer;
      return false;
    }
    note_peaks(NodeId());
    return true;
  }

  bool step(NodeId node) {
    const uint32_t place = graph_.position(node);
    for (const BufferId id : begins_[place]) {
      if (allocate(id)) continue;
      result_.out_of_memory = node;
      return false;
    }
    note_peaks(node);
    if (place + 1 == graph_.num_nodes()) return true;  // the outputs go to the caller
    free_ended(node, place);
    return true;
  }

  bool allocate(BufferId id) {
    const int64_t bytes = memory_.lifetimes[id.index()].bytes;
    const std::optional<uint64_t> address = allocator_.allocate(bytes, kStream);
    if (!address.has_value()) {
      result_.failed_bytes = bytes;
      return false;
    }
    addresses_[id.index()] = *address;
    return true;
  }

  void free_ended(NodeId node, uint32_t place) {
    if (ends_[place].empty()) return;
    graph_.for_each_input(node, [&](NodeId input) {
      for (const BufferId id : storages_.buffers(input)) {
        if (id.is_valid() && memory_.lifetimes[id.index()].last == place) free(id);
      }
    });
    for (const BufferId id : ends_[place]) free(id);
  }

  void free(BufferId id) {
    uint64_t& address = addresses_[id.index()];
    if (address != 0) allocator_.free(address);
    address = 0;
  }

  void note_peaks(NodeId node) {
    const AllocatorStatistics& now = allocator_.statistics();
    note(result_.requested, now.requested_bytes, node);
    note(result_.allocated, now.allocated_bytes, node);
    note(result_.active, now.active_bytes, node);
    note(result_.reserved, now.reserved_bytes, node);
  }

  static void note(ReplayPeak& peak, const StatisticByPool& statistic, NodeId node) {
    const int64_t most = statistic[static_cast<size_t>(PoolKind::kAll)].peak;
    if (most > peak.bytes) peak = {most, node};
  }

  const Graph& graph_;
  const StorageMap& storages_;
  const MemoryReport& memory_;
  StringId name_;
  SimulatedDevice device_;
  CachingAllocator allocator_;
  std::vector<uint64_t> addresses_;  // by buffer; 0: not allocated
  std::vector<BufferId> inputs_;
  std::vector<std::vector<BufferId>> begins_, ends_;
  AllocatorReplay result_;
};

}  // namespace

AllocatorReplay replay_allocator(const Graph& graph, const StorageMap& storages, const MemoryReport& memory,
                                 StringId device, const ReplayOptions& options) {
  return Replayer(graph, storages, memory, device, options).run();
}

}  // namespace fxopt
