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

// A named part of the bytes that are live at a peak.
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
  std::optional<int64_t> value;  // that the peaks are of; absent: what depends on it is of unknown size
  bool is_hint = false;          // the value is the file's, not the caller's
  std::optional<int64_t> min, max;
};

// Calls that are alike, with as many bytes each, and whose values wait at the peak for backward: what recomputing them
// would change there, each by itself. See recompute_candidates().
struct RecomputeRow {
  std::vector<std::string> nodes;  // in the order of the schedule
  std::string target;              // "aten.silu.default"
  std::string module_path;         // "layers.*.feed_forward"
  int64_t bytes = 0;               // less at the peak
  Cost work;                       // more of it
};

// One way to run the caching allocator over a device's trace.
struct AllocatorRow {
  std::string segments;  // "classic", "expandable"
  PeakRow requested, allocated, active, reserved;
  std::string out_of_memory;  // the node whose allocation failed; empty when all fits
  int64_t failed_bytes = 0;
  uint32_t steps = 1;  // that were run until two were alike
  bool is_steady = true;
  std::vector<int64_t> allocated_at, reserved_at;  // by place; for reports that draw
};

// Whether the step fits what the allocator may take; see Fit.
struct FitRow {
  bool fits = true;
  bool is_certain = true;
  bool expandable = false;  // the segments this is of
  int64_t spare = 0;
  std::string node;    // at which memory runs out
  uint32_t place = 0;  // of that node
  int64_t asked = 0, left = 0;
  uint32_t step = 0;
};

// What lowers a peak that is too high, tried on a copy of the graph.
struct Advice {
  std::string input;              // as a shell word
  std::string pipeline;           // for --passes
  bool holds = false;             // the step then fits, and each budget holds; else it is what lowers the peak most
  std::string metric;             // whose peaks follow: "reserved", "requested"
  std::optional<int64_t> before;  // absent: memory runs out before it is reached
  int64_t after = 0;
  std::optional<int64_t> spare;  // of what the allocator may take, then
  bool is_certain = true;        // false: it may be less
  bool is_for_budget = false;    // the step fits as it is, and a budget does not hold
  int64_t flops_before = 0, flops_after = 0;
  int64_t moved_before = 0, moved_after = 0;  // bytes that the calls read and write
};

// Offsets for all storages ahead of time.
struct ArenaRow {
  int64_t bytes = 0;
  int64_t lower_bound = 0;  // no arena is smaller
  std::string method;       // that found it
  bool optimal = false;
};

// Memory outside of the caching allocator.
struct OutsideMemory {
  std::string name;
  std::optional<int64_t> bytes;  // absent: the graph does not show it
  std::string evidence;
  size_t communicators = 0;  // that it is a sum over
};

// The graph's nodes in schedule order, for reports that draw. Repeated texts are numbers into `texts`.
struct ScheduleTable {
  std::vector<std::string> nodes;
  std::vector<std::string> texts;
  std::vector<uint32_t> module_path, phase, target;  // by place
};

// A collective of several tensors, and what of it is on the device.
struct BucketRow {
  std::string node;
  size_t tensors = 0;
  uint32_t first_place = 0, last_place = 0;  // of what it sends, until it is waited for
  size_t storages = 0, live_storages = 0;
  int64_t bytes = 0;       // of its buffers, results and copies of these, which need not be live at once
  int64_t live_bytes = 0;  // of these at the peak
};

// The peaks of one device, and what is live at one of them: at the requested one where hidden memory is modelled, else
// at the ideal one, which is the same.
struct DeviceMemory {
  std::string device;  // empty: tensors without a recorded device
  std::string model;   // of the peak that is described: "ideal", "requested"
  int64_t bytes = 0;
  std::string node;
  uint32_t position = 0;
  std::string module_path;
  std::string source;  // "model.py:123"
  PeakRow ideal, requested;
  std::optional<PeakRange> ideal_range;  // where sizes depend on symbols
  int64_t input_bytes = 0;               // inputs and attributes, what lives between steps
  size_t live = 0;                       // storages at the peak
  std::vector<MemoryShare> by_class;     // largest first, ties by schedule position
  std::vector<MemoryShare> by_module;
  std::vector<MemoryShare> by_layer;
  std::vector<BucketRow> buckets;  // in schedule order
  std::vector<StorageRow> top;
  std::vector<RecomputeRow> recompute;           // cheapest first, as many as `top` may have
  StorageTable storages;                         // all of them; see MemoryView::others
  std::vector<AllocatorRow> allocator;           // of a CUDA device
  std::optional<ArenaRow> arena;                 // absent when the sizes are beyond what an arena holds
  std::vector<OutsideMemory> outside;            // where a profile tells
  std::optional<int64_t> device_bytes;           // what the device has, where a profile tells
  std::optional<int64_t> allocator_bytes;        // what of it the allocator may take; absent: no limit
  size_t hidden_rows = 0, hidden_estimates = 0;  // blocks of hidden memory, and those of them that are estimates
  std::vector<std::string> unknown_hidden;       // calls whose hidden memory is not known
  std::optional<FitRow> fit;                     // with the segments of --alloc-conf; absent: there is no limit
  std::optional<FitRow> other_fit;               // with the others
  std::string target;                            // what it is to fit: "on h100", "in 16.00 GiB"
  std::optional<Advice> advice;                  // where it does not fit, or a budget is broken, and recompute helps
  uint32_t drawn_step = 0;                       // 1: timelines are of the first step, which ran out of memory
  // By place, at the node's fullest; with MemoryView::timelines. The classes' sum is `requested_at`.
  std::vector<int64_t> ideal_at, requested_at;
  std::array<std::vector<int64_t>, kNumMemoryClasses> class_at;  // by MemoryClass; empty: none of that class

  // The peak by a metric: of the allocator's, with the segments `expandable` says. Nothing where it was not run.
  std::optional<PeakRow> peak(MemoryMetric metric, bool expandable) const;
  // Bytes outside of the allocator that are known.
  int64_t outside_bytes() const;
};

// One run of a step of several graphs, and where it has its inputs from: see StepInput.
struct StepRunRow {
  std::string label;
  std::string graph;
  size_t inputs = 0;
  size_t from_outputs = 0;  // of earlier runs
  size_t by_name = 0;       // of these, bound by their names alone
  size_t shared = 0, at_begin = 0, arriving = 0;
  size_t unread = 0;  // saved values that no run takes
};

struct GraphMemory {
  std::string graph;
  std::vector<StepRunRow> step;  // of a step of several graphs, which `graph` was composed of
  size_t nodes = 0;
  std::vector<DeviceMemory> devices;       // largest peak first
  std::string profile;                     // "h100+torch-2.15"; empty: hidden memory is not modelled
  bool is_steady = false;                  // a step that is not the first
  std::string steady;                      // "adam, gradients kept": what then is there; empty for a first step
  bool has_gradients = false;              // of parameters leave the graph
  bool roles_derived = false;              // the file gives placeholders no roles
  size_t unknown = 0;                      // storages without a known size: every peak is then a lower bound
  std::vector<std::string> unknown_nodes;  // that make them
  std::vector<SymbolRow> symbols;          // that sizes depend on
  ScheduleTable schedule;                  // with MemoryView::timelines
  bool has_seconds = false;                // work has a time
  bool is_measured = false;                // by a measurement, where it has calls that are alike

  int64_t peak_bytes() const { return devices.empty() ? 0 : devices.front().bytes; }
};

struct MemoryView {
  MeasureOptions measure;
  size_t top = 20;                  // storages listed
  bool others = false;              // fill DeviceMemory::storages
  std::shared_ptr<Interner> texts;  // of that table; absent: each has its own
  size_t module_depth = 3;          // components of a module path that make a group
  CostSources costs;
  bool candidates = true;  // list what is cheapest to recompute
  std::string target;      // see DeviceMemory::target
};

// The first `depth` components of a module path, a number being any: "layers.*.attention"; "(no module)" without one.
std::string module_group(std::string_view path, size_t depth);

// Neighbours of the same size in one row: "layers.0 .. layers.15 (16 alike)".
std::vector<MemoryShare> fold_shares(const std::vector<MemoryShare>& shares);

// The symbols that its sizes depend on.
std::vector<SymbolRow> symbol_rows(const Footprint& footprint);

// Rows of a footprint. O(nodes + edges + storages log storages).
GraphMemory describe_memory(const Footprint& footprint, const MemoryView& view);

// True where the peak that is described leaves something out: sizes or hidden memory that are not known.
bool is_lower_bound(const GraphMemory& memory, const DeviceMemory& device);

// "s0 = 8 (2..64), u0 unknown (0..)": the symbols that sizes depend on, the first few. Empty without any.
std::string symbols_text(const std::vector<SymbolRow>& symbols);
// "8.00 MiB (8388608 B) to 64.00 MiB (67108864 B)", "at least 8.00 MiB (8388608 B), with no upper bound".
std::string range_text(const PeakRange& range);

// "a step of 2 runs (forward, backward): 26 inputs are outputs of earlier runs, 1 arrives as its run begins".
std::string step_text(const std::vector<StepRunRow>& step);
nlohmann::ordered_json step_run_json(const StepRunRow& run);

// "fits on h100, 56.13 GiB to spare"; "does not fit on h100: at %mm_294 256.00 MiB are asked for and 0.20 GiB are
// left".
std::string verdict_text(const DeviceMemory& device);
// "`sac{policy=per-op},remat` makes it fit: reserved peak 33.53 GiB, 44.54 GiB to spare, 9.0 % more operations"; or
// that nothing does, and the lowest peak that was reached.
std::string advice_text(const Advice& advice);

void print_memory(std::ostream& out, const GraphMemory& memory);
// `all`: the storages of the table in place of those at the top.
enum class Storages { kTop, kAll };
nlohmann::ordered_json memory_json(const GraphMemory& memory, Storages storages = Storages::kTop);

// What memory_json() wrote, as far as two reports are compared: peaks, the peak's place, shares, the storages listed.
// Throws nlohmann::json::exception for anything else.
GraphMemory memory_from_json(const nlohmann::ordered_json& json);

}  // namespace fxopt
