#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/report/memory/storage_table.h"
#include "ir/cost/costs.h"
#include "ir/device/profile.h"
#include "ir/graph/module.h"
#include "ir/memory/footprint.h"

namespace fxopt {

// A named share of the bytes that are live at a peak.
struct MemoryShare {
  std::string name;
  int64_t bytes = 0;
  size_t storages = 0;
};

struct PeakRow {
  int64_t bytes = 0;
  std::string node;  // empty: reached before the first node
  bool cut = false;  // memory ran out: the run ended before its peak
};

// A symbol that sizes depend on.
struct SymbolRow {
  std::string name;
  std::optional<int64_t> value;  // value used for the peaks; absent: dependent sizes are unknown
  bool is_hint = false;          // the value comes from the file, not from the caller
  std::optional<int64_t> min, max;
};

// Similar calls of equal size whose values wait at the peak for backward: the effect of recomputing
// each by itself. See recompute_candidates().
struct RecomputeRow {
  std::vector<std::string> nodes;  // in the order of the schedule
  std::string target;              // "aten.silu.default"
  std::string module_path;         // "layers.*.feed_forward"
  int64_t bytes = 0;               // fewer at the peak
  Cost work;                       // additional work
};

// One way to run the caching allocator over a device's trace.
struct AllocatorRow {
  std::string segments;  // "classic", "expandable"
  PeakRow requested, allocated, active, reserved;
  std::string out_of_memory;  // the node whose allocation failed; empty if everything fits
  int64_t failed_bytes = 0;
  uint32_t steps = 1;  // number of steps run until two were equal
  bool is_steady = true;
  std::vector<int64_t> allocated_at, reserved_at;  // by place; for drawn reports
};

// Whether the step fits into the memory of the allocator; see Fit.
struct FitRow {
  bool fits = true;
  bool is_certain = true;
  bool expandable = false;  // the kind of segments
  int64_t spare = 0;
  std::string node;    // the node at which memory runs out
  uint32_t place = 0;  // place of that node
  int64_t asked = 0, left = 0;
  uint32_t step = 0;
};

// A remedy for a peak that is too high, tried on a copy of the graph.
struct Advice {
  std::string input;     // as a shell word
  std::string pipeline;  // for --passes
  // the step then fits and meets each budget; else: the largest reduction of the peak
  bool holds = false;
  std::string metric;             // metric of the peaks below: "reserved", "requested"
  std::optional<int64_t> before;  // absent: memory runs out before it is reached
  int64_t after = 0;
  std::optional<int64_t> spare;  // memory of the allocator that is then left
  bool is_certain = true;        // false: it may be less
  bool is_for_budget = false;    // the step fits, but exceeds a budget
  int64_t flops_before = 0, flops_after = 0;
  int64_t moved_before = 0, moved_after = 0;  // bytes that the calls read and write
};

// An arena: offsets of every storage, planned ahead of time.
struct ArenaRow {
  int64_t bytes = 0;
  int64_t lower_bound = 0;  // no arena is smaller
  std::string method;       // the method that found it
  bool optimal = false;
};

// Memory outside of the caching allocator.
struct OutsideMemory {
  std::string name;
  std::optional<int64_t> bytes;  // absent: not known from the graph
  std::string evidence;
  size_t communicators = 0;  // number of communicators in the sum
};

// The graph's nodes in schedule order, for drawn reports. Repeated texts are indices into `texts`.
struct ScheduleTable {
  std::vector<std::string> nodes;
  std::vector<std::string> texts;
  std::vector<uint32_t> module_path, phase, target;  // by place
};

// A collective of several tensors, and its memory on the device.
struct BucketRow {
  std::string node;
  size_t tensors = 0;
  uint32_t first_place = 0, last_place = 0;  // lifetime of its operand, until the wait
  size_t storages = 0, live_storages = 0;
  // Bytes of its buffers, results and copies of results, which need not be live at once.
  int64_t bytes = 0;
  int64_t live_bytes = 0;  // live at the peak
};

// The peaks of one device, and the storages live at one peak: the requested one if hidden memory is
// modelled, else the ideal one.
struct DeviceMemory {
  std::string device;  // empty: tensors without a recorded device
  std::string model;   // the described peak: "ideal", "requested"
  int64_t bytes = 0;
  std::string node;
  uint32_t position = 0;
  std::string module_path;
  std::string source;  // "model.py:123"
  PeakRow ideal, requested;
  std::optional<PeakRange> ideal_range;  // if sizes depend on symbols
  int64_t input_bytes = 0;               // inputs and attributes, memory that lives between steps
  size_t live = 0;                       // storages at the peak
  std::vector<MemoryShare> by_class;     // largest first, ties by schedule position
  std::vector<MemoryShare> by_module;
  std::vector<MemoryShare> by_layer;
  std::vector<BucketRow> buckets;  // in schedule order
  std::vector<StorageRow> top;
  std::vector<RecomputeRow> recompute;  // cheapest first, at most `top`
  StorageTable storages;                // every storage; see MemoryView::others
  std::vector<AllocatorRow> allocator;  // for CUDA devices
  // absent if the sizes exceed the capacity of an arena
  std::optional<ArenaRow> arena;
  std::vector<OutsideMemory> outside;   // if a profile gives it
  std::optional<int64_t> device_bytes;  // memory of the device, if a profile gives it
  // memory available to the allocator; absent: no limit
  std::optional<int64_t> allocator_bytes;
  // blocks of hidden memory, and how many are estimates
  size_t hidden_rows = 0, hidden_estimates = 0;
  std::vector<std::string> unknown_hidden;  // calls whose hidden memory is unknown
  // with the segments of --alloc-conf; absent: no limit
  std::optional<FitRow> fit;
  std::optional<FitRow> other_fit;  // with the other kind of segments
  std::string target;               // target of the fit: "on h100", "in 16.00 GiB"
  // if it does not fit or breaks a budget, and recompute helps
  std::optional<Advice> advice;
  uint32_t drawn_step = 0;  // 1: timelines are of the first step, which ran out of memory
  // By place, at the node's largest value; with MemoryView::timelines. The classes' sum is
  // `requested_at`.
  std::vector<int64_t> ideal_at, requested_at;
  std::array<std::vector<int64_t>, kNumMemoryClasses> class_at;  // by MemoryClass; empty: none of that class

  // The peak by a metric. Allocator peaks use the segments that `expandable` selects. Nothing if
  // the allocator was not run.
  std::optional<PeakRow> peak(MemoryMetric metric, bool expandable) const;
  // Known bytes outside of the allocator.
  int64_t outside_bytes() const;
};

// One run of a step of several graphs, and the sources of its inputs: see StepInput.
struct StepRunRow {
  std::string label;
  std::string graph;
  size_t inputs = 0;
  size_t from_outputs = 0;  // outputs of earlier runs
  size_t by_name = 0;       // those of from_outputs that are bound only by name
  size_t shared = 0, at_begin = 0, arriving = 0;
  size_t unread = 0;  // saved values that no run takes
};

struct GraphMemory {
  std::string graph;
  std::vector<StepRunRow> step;  // the runs of the step from which `graph` was composed
  size_t nodes = 0;
  std::vector<DeviceMemory> devices;  // largest peak first
  std::string profile;                // "h100+torch-2.15"; empty: hidden memory is not modelled
  bool is_steady = false;             // a step that is not the first
  // "adam, gradients kept": the existing state; empty for a first step
  std::string steady;
  bool has_gradients = false;  // gradients of parameters leave the graph
  bool has_advice = false;     // recompute policies were tried; see DeviceMemory::advice
  bool roles_derived = false;  // the file records no roles of placeholders
  // storages of unknown size: if any, every peak is a lower bound
  size_t unknown = 0;
  std::vector<std::string> unknown_nodes;  // their producers
  std::vector<SymbolRow> symbols;          // symbols that sizes depend on
  ScheduleTable schedule;                  // with MemoryView::timelines
  bool has_seconds = false;                // work has a time
  bool is_measured = false;                // by a measurement, if it contains similar calls

  int64_t peak_bytes() const { return devices.empty() ? 0 : devices.front().bytes; }
};

struct MemoryView {
  MeasureOptions measure;
  size_t top = 20;                  // storages listed
  bool others = false;              // fill DeviceMemory::storages
  std::shared_ptr<Interner> texts;  // texts of that table; absent: one for each table
  size_t module_depth = 3;          // components of a module path that form a group
  CostSources costs;
  bool candidates = true;  // list the cheapest values to recompute
  std::string target;      // see DeviceMemory::target
};

// The first `depth` components of a module path, with numbers as "*": "layers.*.attention"; "(no
// module)" without a path.
std::string module_group(std::string_view path, size_t depth);

// Merges neighbours of the same size into one row: "layers.0 .. layers.15 (16 alike)".
std::vector<MemoryShare> fold_shares(const std::vector<MemoryShare>& shares);

// The symbols on which sizes depend.
std::vector<SymbolRow> symbol_rows(const Footprint& footprint);

// Rows of a footprint. O(nodes + edges + storages log storages).
GraphMemory describe_memory(const Footprint& footprint, const MemoryView& view);

// True if the described peak omits unknown sizes or hidden memory.
bool is_lower_bound(const GraphMemory& memory, const DeviceMemory& device);

// "s0 = 8 (2..64), u0 unknown (0..)": the first few symbols that sizes depend on. Empty without
// any.
std::string symbols_text(const std::vector<SymbolRow>& symbols);
// "8.00 MiB (8388608 B) to 64.00 MiB (67108864 B)", "at least 8.00 MiB (8388608 B), with no upper
// bound".
std::string range_text(const PeakRange& range);

// "a step of 2 runs (forward, backward): 26 inputs from outputs of earlier runs, 0 shared with
// them".
std::string step_text(const std::vector<StepRunRow>& step);
nlohmann::ordered_json step_run_json(const StepRunRow& run);

// "fits on h100, 56.13 GiB to spare"; "does not fit on h100: %mm_294 requests 256.00 MiB, but 0.20
// GiB are left".
std::string verdict_text(const DeviceMemory& device);
// "`sac{policy=per-op},remat` makes it fit: reserved peak 33.53 GiB, 44.54 GiB to spare, 9.0 % more
// operations"; or that no policy does, with the lowest peak reached.
std::string advice_text(const Advice& advice);

void print_memory(std::ostream& out, const GraphMemory& memory);
// `all`: every storage of the table instead of those at the top.
enum class Storages { kTop, kAll };
nlohmann::ordered_json memory_json(const GraphMemory& memory, Storages storages = Storages::kTop);

// Reads the fields of memory_json() that are needed to compare two reports: peaks, the peak's
// place, shares, the listed storages. Throws nlohmann::json::exception for any other JSON.
GraphMemory memory_from_json(const nlohmann::ordered_json& json);

}  // namespace fxopt
