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

// The peaks. Each follows a model of its own.
enum class MemoryMetric : uint8_t { kIdeal, kRequested, kAllocated, kActive, kReserved, kArena };
inline constexpr size_t kNumMemoryMetrics = 6;
std::string_view metric_name(MemoryMetric metric);
std::optional<MemoryMetric> find_metric(std::string_view name);
// True for metrics of the caching allocator, which only CUDA devices have.
bool is_of_allocator(MemoryMetric metric);

// True for a device with the framework's CUDA caching allocator: "cuda", "cuda:1".
bool is_cuda(std::string_view device);

struct MeasureOptions {
  MemoryOptions memory;
  TraceOptions trace;         // hidden memory applies to CUDA devices only
  AllocatorConfig allocator;  // replayed with classic and with expandable segments
  // The allocator's limit; absent: device memory minus memory outside.
  std::optional<int64_t> device_bytes;
  int64_t arena_effort = 20'000'000;  // see ArenaOptions; about 20 ms
  bool timelines = false;             // fill the timelines for charts
};

struct FootprintPeak {
  int64_t bytes = 0;
  NodeId node;       // the first node that reaches it; invalid: reached before the first node
  bool cut = false;  // the run ended before its peak, out of memory
};

// Memory outside the caching allocator.
struct OutsideBytes {
  const OutsideRow* row = nullptr;  // row of the profile
  std::optional<int64_t> bytes;     // absent: unknown from the graph
  size_t communicators = 0;         // number of communicators in the sum
};

// Whether a step fits into the memory available to the allocator.
struct Fit {
  bool fits = true;
  bool is_certain = true;  // false: some memory use is unknown, so the step may take more
  int64_t spare = 0;       // if it fits: available bytes above the reserved peak
  // If it does not fit: the node at which memory runs out, the bytes it asks for, the bytes left
  // then, and the step.
  NodeId node;
  int64_t asked = 0, left = 0;
  uint32_t step = 0;
};

// Bytes at each place of the schedule, for charts.
struct FootprintTimeline {
  uint32_t step = 0;  // 0: the measured step; 1: the first step, if memory ran out in it
  MemoryTimeline live;
  // `live.requested` split by MemoryClass; empty: none.
  std::array<std::vector<int64_t>, kNumMemoryClasses> by_class;
};

struct DeviceFootprint {
  StringId device;  // invalid: tensors without a recorded device
  MemoryTrace trace;
  bool has_profile = false;  // hidden memory is modelled
  // False: sizes, hidden memory or memory outside are unknown, so peaks are bounds.
  bool is_exact = true;
  FootprintPeak ideal, requested;
  uint32_t place = 0;                      // the requested peak's place in the schedule
  std::optional<PeakRange> ideal_range;    // if sizes depend on symbols
  std::vector<AllocatorReplay> replays;    // CUDA only: with classic, then with expandable segments
  std::optional<ArenaPlan> arena;          // absent if the sizes exceed an arena's limits
  std::vector<OutsideBytes> outside;       // from the profile, if any
  std::optional<int64_t> device_bytes;     // memory of the device, if the profile has it
  std::optional<int64_t> allocator_bytes;  // the allocator's share of it; absent: no limit
  FootprintTimeline timeline;              // filled with MeasureOptions::timelines

  // Returns the peak by a metric. `expandable` chooses the segments for the allocator's metrics.
  // Returns nothing for a model that was not run.
  std::optional<FootprintPeak> peak(MemoryMetric metric, bool expandable) const;
  // Returns nothing without a limit or without an allocator.
  std::optional<Fit> fit(bool expandable) const;
  // The known bytes outside the allocator.
  int64_t outside_bytes() const;
};

// Everything known about the memory of one graph, as ids and figures that reports turn into rows.
// Refers to the graph and the profile. Valid until the graph changes.
struct Footprint {
  const Graph* graph = nullptr;
  PhaseMap phases;
  StorageMap storages;
  MemoryReport memory;
  SizeRanges ranges;
  std::vector<DeviceFootprint> devices;  // largest requested peak first, ties as in `memory`

  // The number of devices in `memory` that are missing in `devices`: see kMaxMeasuredDevices.
  size_t num_unmeasured() const { return memory.devices.size() - devices.size(); }
};

// At most this many devices are measured, more than any machine has: those with the largest ideal
// peaks. Each takes a trace of the whole schedule, so the limit keeps time and memory from growing
// with devices times nodes.
inline constexpr size_t kMaxMeasuredDevices = 256;

// O(measured devices * (nodes + edges + storages log storages)), plus the effort of the arena's
// search.
Footprint measure(const Graph& graph, const MeasureOptions& options);

// Returns the options of the allocator's replay for a device. The simulated device has all its
// memory, and memory outside the allocator counts as used by others.
ReplayOptions replay_options(const DeviceFootprint& device, const MeasureOptions& options);

}  // namespace fxopt
