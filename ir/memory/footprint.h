#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/allocator/config.h"
#include "ir/alias/storages.h"
#include "ir/device/profile.h"
#include "ir/graph/graph.h"
#include "ir/memory/memory.h"
#include "ir/memory/ranges.h"
#include "ir/memory/replay.h"
#include "ir/memory/trace.h"
#include "ir/step/phases.h"

namespace fxopt {

// The kinds of memory peaks. kIdeal counts the bytes of live storages and of memory kept between
// steps. kRequested also counts hidden memory (workspaces and other memory that the graph does not
// show). kAllocated, kActive and kReserved are figures of the simulated caching allocator. kArena
// is the size of an arena that is planned before the run.
enum class MemoryMetric : uint8_t { kIdeal, kRequested, kAllocated, kActive, kReserved, kArena };
inline constexpr size_t kNumMemoryMetrics = 6;
std::string_view metric_name(MemoryMetric metric);
std::optional<MemoryMetric> find_metric(std::string_view name);
// True for metrics of the caching allocator, which only CUDA devices have.
bool is_of_allocator(MemoryMetric metric);

// True for a device that uses the framework's CUDA caching allocator, such as "cuda" or "cuda:1".
bool is_cuda(std::string_view device);

struct MeasureOptions {
  MemoryOptions memory;
  // `trace` may contain a device profile, which describes hidden memory (memory that the graph does
  // not show). The profile is used for CUDA devices only.
  TraceOptions trace;
  // Options of the allocator. The trace is replayed twice: without and with expandable segments.
  AllocatorConfig allocator;
  // The allocator's limit. If absent, the limit is the device memory minus memory outside the
  // allocator.
  std::optional<int64_t> device_bytes;
  // The limit on the search for arena offsets (ArenaOptions::effort). The default takes about 20
  // ms.
  int64_t arena_effort = 20'000'000;
  bool timelines = false;  // fills the timelines for charts
};

struct FootprintPeak {
  int64_t bytes = 0;
  // The first node that reaches the peak. Invalid if the peak is reached before the first node.
  NodeId node;
  // True if the replay ran out of memory and stopped. `bytes` is then only the peak until the
  // replay stopped.
  bool cut = false;
};

// Memory outside the caching allocator.
struct OutsideBytes {
  const OutsideRow* row = nullptr;  // the entry of the device profile, such as "context"
  std::optional<int64_t> bytes;     // absent if the bytes are unknown
  // Number of communicators whose memory is added up in `bytes`. 0 if the profile's entry is not
  // per communicator. The graph needs one communicator for each process group of its collectives.
  // If the memory of a communicator is unknown, `bytes` is absent. In that case, the number
  // includes the first communicator of unknown memory, but no later communicator.
  size_t communicators = 0;
};

// Whether a step fits into the memory available to the allocator.
struct Fit {
  bool fits = true;
  bool is_certain = true;  // false if some memory use is unknown, so the step may need more
  int64_t spare = 0;       // if the step fits: available bytes above the reserved peak
  // If the step does not fit: the node at which memory runs out, the bytes that the node requests,
  // the bytes that are left, and the number of the step.
  NodeId node;
  int64_t asked = 0, left = 0;
  uint32_t step = 0;
};

// Bytes at each place of the schedule, for charts.
struct FootprintTimeline {
  // 0 if the timeline shows the step whose peaks are reported. 1 if the timeline shows the first
  // step, because memory ran out in that step.
  uint32_t step = 0;
  MemoryTimeline live;
  // `live.requested`, split by MemoryClass. A vector is empty if its class has no memory.
  std::array<std::vector<int64_t>, kNumMemoryClasses> by_class;
};

struct DeviceFootprint {
  StringId device;  // invalid for tensors without a recorded device
  MemoryTrace trace;
  // True if a device profile was used, so that the trace has workspaces and other hidden memory.
  bool has_profile = false;
  // False if some sizes, hidden memory or memory outside the allocator are unknown. The figures
  // then leave out the unknown memory, so the peaks are only bounds.
  bool is_exact = true;
  FootprintPeak ideal, requested;
  uint32_t place = 0;                    // schedule position of the peak of requested bytes
  std::optional<PeakRange> ideal_range;  // set if sizes depend on symbols
  // Replays of the CUDA allocator: the first without expandable segments, the second with
  // expandable segments.
  std::vector<AllocatorReplay> replays;
  std::optional<ArenaPlan> arena;     // absent if the sizes exceed an arena's limits
  std::vector<OutsideBytes> outside;  // from the profile; empty without a profile
  // Memory of the device, from the profile. Absent if the profile does not record the memory, or if
  // MeasureOptions::device_bytes is set.
  std::optional<int64_t> device_bytes;
  // The allocator's share of the device memory. Absent if no limit exists.
  std::optional<int64_t> allocator_bytes;
  FootprintTimeline timeline;  // filled if MeasureOptions::timelines is set

  // Returns the peak of a metric. For the allocator's metrics, `expandable` selects the replay with
  // expandable segments. Returns nothing if the metric's model was not run.
  std::optional<FootprintPeak> peak(MemoryMetric metric, bool expandable) const;
  // Returns whether the step fits. Returns nothing if the device has no limit or no caching
  // allocator.
  std::optional<Fit> fit(bool expandable) const;
  // Returns the sum of the known bytes outside the allocator.
  int64_t outside_bytes() const;
};

// All facts about the memory of one graph, as ids and figures. The graph and the device profile
// must outlive this object. Valid until the graph changes.
struct Footprint {
  const Graph* graph = nullptr;
  PhaseMap phases;
  StorageMap storages;
  MemoryReport memory;
  SizeRanges ranges;
  // Sorted by the peak of requested bytes, with the largest first. Devices with equal peaks are in
  // the order of `memory`.
  std::vector<DeviceFootprint> devices;

  // Returns the number of devices in `memory` that are missing in `devices`. See
  // kMaxMeasuredDevices.
  size_t num_unmeasured() const { return memory.devices.size() - devices.size(); }
};

// The largest number of devices that are measured. The devices with the largest ideal peaks are
// chosen. Each measured device needs a trace of the whole schedule. Without this limit, time and
// memory would grow with the product of devices and nodes.
inline constexpr size_t kMaxMeasuredDevices = 256;

// Measures the memory of the graph on each device. Takes O(measured devices * (nodes + edges +
// storages log storages)), plus one arena search for each measured device.
// MeasureOptions::arena_effort limits each search.
Footprint measure(const Graph& graph, const MeasureOptions& options);

// Returns the options of the allocator's replay for a device. The simulated device has all memory
// of the real device. Memory outside the allocator is passed as ReplayOptions::other_bytes.
ReplayOptions replay_options(const DeviceFootprint& device, const MeasureOptions& options);

}  // namespace fxopt
