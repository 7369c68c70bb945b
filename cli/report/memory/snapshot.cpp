#include "cli/report/memory/snapshot.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "cli/print/nodes.h"
#include "cli/print/pickle.h"
#include "core/text.h"
#include "ir/alias/storages.h"
#include "ir/memory/replay.h"

namespace fxopt {
namespace {

constexpr int64_t kMaxDevice = 1023;

// The recording of one device's step.
struct Recording final : ReplayListener {
  const MemoryTrace* trace = nullptr;
  size_t index = 0;  // index of the device
  struct Event {
    uint32_t block;
    AllocatorEvent event;
  };
  std::vector<Event> events;
  std::vector<SegmentInfo> segments;  // after the step
  // The block at each address. Never iterated.
  std::unordered_map<uint64_t, uint32_t> block_at;

  void on_begin(const std::vector<uint64_t>& addresses) override {
    events.clear();
    block_at.clear();
    for (uint32_t block = 0; block < addresses.size(); ++block) {
      if (addresses[block] != 0) block_at[addresses[block]] = block;
    }
  }
  void on_event(uint32_t, uint32_t block, const AllocatorEvent& event) override {
    events.push_back({block, event});
    if (event.action == AllocatorAction::kAllocate) block_at[event.address] = block;
  }
  void on_end(const CachingAllocator& allocator) override { segments = allocator.snapshot(); }
};

std::string_view action_name(AllocatorAction action) {
  constexpr std::string_view kNames[] = {"alloc",        "free_requested", "free_completed", "segment_alloc",
                                         "segment_free", "segment_map",    "segment_unmap",  "oom"};
  return kNames[static_cast<size_t>(action)];
}

std::string_view state_name(BlockState state) {
  constexpr std::string_view kNames[] = {"active_allocated", "active_pending_free", "inactive"};
  return kNames[static_cast<size_t>(state)];
}

class Writer {
 public:
  Writer(const Graph& graph, const StorageMap& storages, const AllocatorConfig& config)
      : graph_(graph), storages_(storages), config_(config) {}

  std::string run(const std::vector<Recording>& recordings, const std::string& alloc_conf) {
    size_t devices = 0;
    for (const Recording& recording : recordings) devices = std::max(devices, recording.index + 1);
    pickle_.begin_dict();
    pickle_.key("device_traces");
    pickle_.begin_list();
    for (size_t device = 0; device < devices; ++device) {
      pickle_.begin_list();
      for (const Recording& recording : recordings) {
        if (recording.index == device) write_events(recording);
      }
      pickle_.end_list();
    }
    pickle_.end_list();
    pickle_.key("segments");
    pickle_.begin_list();
    for (const Recording& recording : recordings) {
      for (const SegmentInfo& segment : recording.segments) write_segment(recording, segment);
    }
    pickle_.end_list();
    pickle_.key("allocator_settings");
    write_settings(alloc_conf);
    pickle_.end_dict();
    return pickle_.finish();
  }

 private:
  void write_events(const Recording& recording) {
    int64_t time = 0;
    for (const Recording::Event& event : recording.events) {
      pickle_.begin_dict();
      pickle_.key("action");
      pickle_.string(action_name(event.event.action));
      const bool is_oom = event.event.action == AllocatorAction::kOutOfMemory;
      integer(is_oom ? "device_free" : "addr", static_cast<int64_t>(event.event.address));
      integer("size", event.event.bytes);
      integer("stream", event.event.stream);
      integer("time_us", time++);
      pickle_.key("frames");
      write_frames(recording, event.block);
      pickle_.end_dict();
    }
  }

  void write_segment(const Recording& recording, const SegmentInfo& segment) {
    int64_t allocated = 0, active = 0, requested = 0;
    for (const BlockInfo& block : segment.blocks) {
      if (block.state == BlockState::kAllocated) allocated += block.bytes;
      if (block.state != BlockState::kFree) active += block.bytes;
      requested += block.requested_bytes;
    }
    pickle_.begin_dict();
    integer("device", static_cast<int64_t>(recording.index));
    integer("address", static_cast<int64_t>(segment.address));
    integer("total_size", segment.bytes);
    integer("allocated_size", allocated);
    integer("active_size", active);
    integer("requested_size", requested);
    integer("stream", segment.stream);
    pickle_.key("segment_type");
    pickle_.string(segment.small ? "small" : "large");
    pickle_.key("segment_pool_id");
    pickle_.pair(segment.pool.first, segment.pool.second);
    pickle_.key("is_expandable");
    pickle_.boolean(segment.expandable);
    pickle_.key("frames");
    write_frames(recording, ReplayListener::kNoBlock);
    pickle_.key("blocks");
    pickle_.begin_list();
    for (const BlockInfo& block : segment.blocks) write_block(recording, block);
    pickle_.end_list();
    pickle_.end_dict();
  }

  void write_block(const Recording& recording, const BlockInfo& block) {
    pickle_.begin_dict();
    integer("address", static_cast<int64_t>(block.address));
    integer("size", block.bytes);
    integer("requested_size", block.requested_bytes);
    pickle_.key("state");
    pickle_.string(state_name(block.state));
    pickle_.key("frames");
    const auto found = recording.block_at.find(block.address);
    const bool is_used = block.state != BlockState::kFree && found != recording.block_at.end();
    write_frames(recording, is_used ? found->second : ReplayListener::kNoBlock);
    pickle_.end_dict();
  }

  // Writes the frames of a block once. Later calls for the block write a reference to these frames.
  void write_frames(const Recording& recording, uint32_t number) {
    const uint32_t name =
        number == ReplayListener::kNoBlock ? number : static_cast<uint32_t>(recording.index << 22) + number;
    const bool is_shared = number < (1u << 22);
    if (is_shared && pickle_.refer(name)) return;
    pickle_.begin_list();
    if (number != ReplayListener::kNoBlock) {
      const TraceBlock& block = recording.trace->blocks[number];
      const Module& module = graph_.module();
      const Node& node = graph_[block.node];
      write_frame(title_of(block), std::string(graph_.name_of(block.node)), graph_.position(block.node));
      if (node.module_path.is_valid()) write_frame("module", std::string(module.text(node.module_path)), 0);
      if (node.source.is_valid()) {
        const Source& source = module.source(node.source);
        write_frame(std::string(module.text(source.function)), std::string(module.text(source.file)), source.line);
      }
    }
    pickle_.end_list();
    if (is_shared) pickle_.keep(name);
  }

  std::string title_of(const TraceBlock& block) const {
    std::string title = graph_[block.node].is_call() ? std::string(target_text(graph_, block.node)) : "input";
    if (!block.label.empty())
      return std::string(memory_class_name(block.kind)) + ":" + std::string(block.label) + " of " + title;
    if (!block.buffer.is_valid() || !storages_.buffer(block.buffer).value.is_valid()) return title;
    return title + " " + value_text(graph_, graph_.pool().value(storages_.buffer(block.buffer).value));
  }

  void write_frame(const std::string& name, const std::string& file, int64_t line) {
    pickle_.begin_dict();
    pickle_.key("name");
    pickle_.string(name);
    pickle_.key("filename");
    pickle_.string(file);
    integer("line", line);
    pickle_.end_dict();
  }

  void write_settings(const std::string& alloc_conf) {
    pickle_.begin_dict();
    pickle_.key("PYTORCH_CUDA_ALLOC_CONF");
    pickle_.string(alloc_conf);
    integer("max_split_size", config_.max_split_bytes == AllocatorConfig::kUnlimited ? -1 : config_.max_split_bytes);
    pickle_.key("expandable_segments");
    pickle_.boolean(config_.expandable_segments);
    integer("pinned_num_register_threads", config_.pinned_num_register_threads);
    pickle_.key("release_lock_on_cudamalloc");
    pickle_.boolean(config_.release_lock_on_malloc);
    pickle_.key("pinned_use_cuda_host_register");
    pickle_.boolean(config_.pinned_use_host_register);
    pickle_.key("roundup_power2_divisions");
    pickle_.begin_dict();
    for (size_t i = 0; i < config_.roundup_power2_divisions.size(); ++i) {
      integer(std::to_string(int64_t{1} << i), config_.roundup_power2_divisions[i]);
    }
    pickle_.end_dict();
    pickle_.end_dict();
  }

  void integer(std::string_view key, int64_t value) {
    pickle_.key(key);
    pickle_.integer(value);
  }

  const Graph& graph_;
  const StorageMap& storages_;
  const AllocatorConfig& config_;
  PickleWriter pickle_;
};

}  // namespace

std::string memory_snapshot(const Footprint& footprint, const MeasureOptions& options, const std::string& alloc_conf) {
  std::vector<Recording> recordings;
  for (const DeviceFootprint& each : footprint.devices) {
    const std::string_view device = footprint.graph->module().text(each.device);
    if (!is_cuda(device)) continue;
    Recording& recording = recordings.emplace_back();
    const size_t colon = device.find(':');
    const int64_t index = colon == std::string_view::npos ? 0 : parse_int64(device.substr(colon + 1)).value_or(0);
    recording.index = static_cast<size_t>(std::clamp<int64_t>(index, 0, kMaxDevice));
    recording.trace = &each.trace;
    ReplayOptions replay = replay_options(each, options);
    replay.listener = &recording;
    replay_allocator(each.trace, replay);
  }
  if (recordings.empty()) return {};
  return Writer(*footprint.graph, footprint.storages, options.allocator).run(recordings, alloc_conf);
}

}  // namespace fxopt
