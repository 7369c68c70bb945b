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

// The peaks, each of its own model.
enum class MemoryMetric : uint8_t { kIdeal, kRequested, kAllocated, kActive, kReserved, kArena };
inline constexpr size_t kNumMemoryMetrics = 6;
std::string_view metric_name(MemoryMetric metric);
std::optional<MemoryMetric> find_metric(std::string_view name);
// True for those of the caching allocator, which only CUDA devices have.
bool is_of_allocator(MemoryMetric metric);

// True for a device that has the framework's CUDA caching allocator: "cuda", "cuda:1".
bool is_cuda(std::string_view device);

struct MeasureOptions {
  MemoryOptions memory;
  TraceOptions trace;                   // hidden memory is of CUDA devices
  AllocatorConfig allocator;            // run with classic and with expandable segments
  std::optional<int64_t> device_bytes;  // what the allocator may take; absent: what the profile leaves it
  int64_t arena_effort = 20'000'000;    // see ArenaOptions; some 20 ms
  bool timelines = false;               // fill what reports draw
};

struct FootprintPeak {
  int64_t bytes = 0;
  NodeId node;       // the first at which it is reached; invalid: what is there before the first node reaches it
  bool cut = false;  // memory ran out: the run ended before its peak
};

// Memory outside of the caching allocator.
struct OutsideBytes {
  const OutsideRow* row = nullptr;  // of the profile
  std::optional<int64_t> bytes;     // absent: the graph does not show it
  size_t communicators = 0;         // that it is a sum over
};

// Whether a step fits into what the allocator may take.
struct Fit {
  bool fits = true;
  bool is_certain = true;  // false: it may take more than is known
  int64_t spare = 0;       // of what it may take, above the reserved peak, where it fits
  // Where it does not: the node at which memory runs out, what it asks for, what is left then, in which step.
  NodeId node;
  int64_t asked = 0, left = 0;
  uint32_t step = 0;
};

// Bytes at each place of the schedule, for reports that draw.
struct FootprintTimeline {
  uint32_t step = 0;  // 0: of the step that is measured; 1: of the first one, in which memory ran out before that
  MemoryTimeline live;
  std::array<std::vector<int64_t>, kNumMemoryClasses> by_class;  // its `requested`, by MemoryClass; empty: none of it
};

struct DeviceFootprint {
  StringId device;  // invalid: tensors without a recorded device
  MemoryTrace trace;
  bool has_profile = false;  // hidden memory is modelled
  bool is_exact = true;      // false: sizes, hidden memory, or memory outside are not known, and each peak is a bound
  FootprintPeak ideal, requested;
  uint32_t place = 0;                      // of the requested peak in the schedule
  std::optional<PeakRange> ideal_range;    // where sizes depend on symbols
  std::vector<AllocatorReplay> replays;    // of a CUDA device: with classic, then with expandable segments
  std::optional<ArenaPlan> arena;          // absent when the sizes are beyond what an arena holds
  std::vector<OutsideBytes> outside;       // where a profile tells
  std::optional<int64_t> device_bytes;     // what the device has, where a profile tells
  std::optional<int64_t> allocator_bytes;  // what of it the allocator may take; absent: no limit
  FootprintTimeline timeline;              // with MeasureOptions::timelines

  // The peak by a metric: of the allocator's, with the segments `expandable` says. Nothing where it was not run.
  std::optional<FootprintPeak> peak(MemoryMetric metric, bool expandable) const;
  // Nothing where there is no limit, or no allocator.
  std::optional<Fit> fit(bool expandable) const;
  // Bytes outside of the allocator that are known.
  int64_t outside_bytes() const;
};

// All that is known of the memory of one graph: facts with ids, of which reports make rows. Refers to the graph and to
// the profile, and is good until the graph changes.
struct Footprint {
  const Graph* graph = nullptr;
  PhaseMap phases;
  StorageMap storages;
  MemoryReport memory;
  SizeRanges ranges;
  std::vector<DeviceFootprint> devices;  // largest requested peak first, ties as in `memory`

  // Devices that `memory` has and `devices` has not: see kMaxMeasuredDevices.
  size_t num_unmeasured() const { return memory.devices.size() - devices.size(); }
};

// Of more devices than any machine has, those with the largest ideal peaks are measured: each has a trace of the whole
// schedule, so that time and memory would grow with devices times nodes.
inline constexpr size_t kMaxMeasuredDevices = 256;

// O(measured devices * (nodes + edges + storages log storages)), and what the arena's search may take.
Footprint measure(const Graph& graph, const MeasureOptions& options);

// How the allocator is run for a device: over all of it, of which others than the allocator have their part.
ReplayOptions replay_options(const DeviceFootprint& device, const MeasureOptions& options);

}  // namespace fxopt
