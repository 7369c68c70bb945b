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
  std::string node;  // empty if the peak is before the first node
  bool cut = false;  // memory ran out, so the simulated step ended before its peak
};

// A symbol of the graph, such as `s0`. The sizes of some storages depend on its value.
struct SymbolRow {
  std::string name;
  std::optional<int64_t> value;  // used for the peaks; if absent, dependent sizes are unknown
  bool is_hint = false;          // the value comes from the file, not from the caller
  std::optional<int64_t> min, max;
};

// Similar calls of equal size whose values are live at the peak because backward needs them. The
// row adds up the effects of recomputing each of these calls separately: see
// recompute_candidates().
struct RecomputeRow {
  std::vector<std::string> nodes;  // in schedule order
  std::string target;              // "aten.silu.default"
  std::string module_path;         // "layers.*.feed_forward"
  int64_t bytes = 0;               // reduction of the peak
  Cost work;                       // additional work
};

// The result of running the caching allocator over a device's trace with one kind of segments.
struct AllocatorRow {
  std::string segments;  // "classic", "expandable"
  PeakRow requested, allocated, active, reserved;
  std::string out_of_memory;  // the node whose allocation failed; empty if everything fits
  int64_t failed_bytes = 0;
  uint32_t steps = 1;                              // number of simulated steps
  bool is_steady = true;                           // the last two steps were equal
  std::vector<int64_t> allocated_at, reserved_at;  // bytes by schedule position, for charts
};

// The result of checking whether the step fits into the memory of the allocator: see Fit.
struct FitRow {
  bool fits = true;
  bool is_certain = true;
  bool expandable = false;  // true if the allocator uses expandable segments
  int64_t spare = 0;
  std::string node;    // the node at which memory runs out
  uint32_t place = 0;  // schedule position of `node`
  int64_t asked = 0, left = 0;
  uint32_t step = 0;
};

// A recompute policy that lowers a peak, tried on a copy of the graph.
struct Advice {
  std::string input;     // the input as a shell word
  std::string pipeline;  // the pipeline for --passes
  // True if the step with this policy fits into memory and meets each budget. If false, this policy
  // only lowers the peak, and no other tried policy lowers the peak more.
  bool holds = false;
  std::string metric;  // metric of `before` and `after`: "reserved", "requested"
  // The peak without this policy. Absent if the step runs out of memory before its peak.
  std::optional<int64_t> before;
  int64_t after = 0;             // the peak with this policy
  std::optional<int64_t> spare;  // free memory of the allocator with this policy
  bool is_certain = true;        // false if some sizes are unknown, or if `spare` may be lower
  bool is_for_budget = false;    // true if the step without this policy fits into memory, but exceeds a budget
  int64_t flops_before = 0, flops_after = 0;
  int64_t moved_before = 0, moved_after = 0;  // bytes that all calls of the graph read and write
};

// An arena, in which the offset of every storage is planned ahead of time.
struct ArenaRow {
  int64_t bytes = 0;
  int64_t lower_bound = 0;  // no arena can be smaller
  std::string method;       // the method that found this arena
  bool optimal = false;
};

// Memory outside of the caching allocator.
struct OutsideMemory {
  std::string name;
  std::optional<int64_t> bytes;  // absent if the graph does not determine them
  std::string evidence;
  size_t communicators = 0;  // number of communicators that `bytes` covers
};

// The graph's nodes in schedule order, for charts. Repeated texts are indices into `texts`.
struct ScheduleTable {
  std::vector<std::string> nodes;
  std::vector<std::string> texts;
  std::vector<uint32_t> module_path, phase, target;  // by schedule position
};

// A collective of several tensors, and its memory on the device. Places are schedule positions.
struct BucketRow {
  std::string node;
  size_t tensors = 0;
  uint32_t first_place = 0, last_place = 0;  // lifetime of the operand, until the wait
  size_t storages = 0, live_storages = 0;
  // Bytes of buffers, results and copies of results, which may be live at different times.
  int64_t bytes = 0;
  int64_t live_bytes = 0;  // the bytes that are live at the peak
};

// The peaks of one device, and the storages that are live at one of the peaks. The described peak
// is the peak whose storages are listed. Without a device profile, this is the ideal peak: the
// largest number of bytes in storages that are live at one time. With a profile, this is the
// requested peak: the largest number of bytes that the program requests from the allocator. The
// requested peak includes hidden memory, such as workspaces of kernels, which the graph does not
// show.
struct DeviceMemory {
  std::string device;  // empty for tensors without a recorded device
  std::string model;   // the kind of the described peak: "ideal" or "requested"
  int64_t bytes = 0;   // size of the described peak
  std::string node;
  uint32_t position = 0;
  std::string module_path;
  std::string source;  // "model.py:123"
  PeakRow ideal, requested;
  std::optional<PeakRange> ideal_range;  // present if sizes depend on symbols
  int64_t input_bytes = 0;               // bytes that are live before the step
  size_t live = 0;                       // number of storages at the peak
  std::vector<MemoryShare> by_class;     // largest first, ties by schedule position
  std::vector<MemoryShare> by_module;
  std::vector<MemoryShare> by_layer;
  std::vector<BucketRow> buckets;  // in schedule order
  std::vector<StorageRow> top;
  std::vector<RecomputeRow> recompute;  // cheapest first, at most MemoryView::top rows
  StorageTable storages;                // every storage; see MemoryView::others
  std::vector<AllocatorRow> allocator;  // for CUDA devices
  // Absent if the sizes exceed the capacity of an arena.
  std::optional<ArenaRow> arena;
  // Memory outside of the allocator. Empty if no device profile describes this memory.
  std::vector<OutsideMemory> outside;
  // Memory of the device. Absent if no device profile states the size of this memory.
  std::optional<int64_t> device_bytes;
  // Memory that is available to the allocator. Absent if the memory has no limit.
  std::optional<int64_t> allocator_bytes;
  // The number of blocks of hidden memory, such as workspaces of kernels.
  size_t hidden_rows = 0;
  // The number of blocks of hidden memory whose sizes are only estimates.
  size_t hidden_estimates = 0;
  std::vector<std::string> unknown_hidden;  // calls whose workspaces are unknown
  // Says whether the step fits into the allocator's memory, if the allocator uses the kind of
  // segments (classic or expandable) that --alloc-conf selects. Absent if the memory has no limit,
  // or if the device has no caching allocator.
  std::optional<FitRow> fit;
  // Says whether the step fits with the other kind of segments. If `fit` is about classic segments,
  // the other kind is expandable. If `fit` is about expandable segments, the other kind is classic.
  std::optional<FitRow> other_fit;
  std::string target;  // target of the fit: "on h100", "in 16.00 GiB"
  // Present if the step does not fit or exceeds a budget, and a recompute policy lowers the peak.
  std::optional<Advice> advice;
  // 0 if the timelines show the step whose peaks are reported. 1 if the timelines show the first
  // step instead. The value is 1 if both conditions hold:
  // - The reported peaks are those of a later step.
  // - Memory already ran out in the first step, with the segments that --alloc-conf selects.
  uint32_t drawn_step = 0;
  // The largest number of bytes while each node runs, by schedule position. Filled if
  // MeasureOptions::timelines is set. The sum of `class_at` over all classes is `requested_at`. A
  // class without memory has an empty list.
  std::vector<int64_t> ideal_at, requested_at;
  std::array<std::vector<int64_t>, kNumMemoryClasses> class_at;  // by MemoryClass

  // Returns the peak of a metric. Allocator peaks use the kind of segments that `expandable`
  // selects. Allocator peaks are absent if the allocator was not run.
  std::optional<PeakRow> peak(MemoryMetric metric, bool expandable) const;
  // Returns the known bytes outside of the allocator.
  int64_t outside_bytes() const;
};

// One execution of a graph, called a run, in a step of several graphs. The row counts the inputs of
// the run by source: see StepInput.
struct StepRunRow {
  std::string label;
  std::string graph;
  size_t inputs = 0;
  size_t from_outputs = 0;  // inputs that are outputs of earlier runs
  size_t by_name = 0;       // inputs among `from_outputs` that are bound only by name
  size_t shared = 0, at_begin = 0, arriving = 0;
  size_t unread = 0;  // saved values that no later run uses
};

struct GraphMemory {
  std::string graph;
  std::vector<StepRunRow> step;  // the runs of the step from which `graph` was composed
  size_t nodes = 0;
  std::vector<DeviceMemory> devices;  // largest peak first
  std::string profile;                // device profile: "h100+torch-2.15"; empty without --device
  bool is_steady = false;             // the step is not the first one
  // The state that exists before the step: "adam, gradients kept". Empty for a first step.
  std::string steady;
  bool has_advice = false;     // recompute policies were tried; see DeviceMemory::advice
  bool roles_derived = false;  // the file records no roles of placeholders
  size_t resized = 0;          // number of storages that the graph resizes
  // The number of storages of unknown size. If it is not 0, every peak is a lower bound.
  size_t unknown = 0;
  std::vector<std::string> unknown_nodes;  // producers of the storages of unknown size
  std::vector<SymbolRow> symbols;          // the symbols on which sizes depend
  ScheduleTable schedule;                  // filled if MeasureOptions::timelines is set
  bool has_seconds = false;                // times of calls are known
  bool is_measured = false;                // measured times (--measurement) replace estimates

  int64_t peak_bytes() const { return devices.empty() ? 0 : devices.front().bytes; }
};

struct MemoryView {
  MeasureOptions measure;
  size_t top = 20;                  // number of storages to list
  bool others = false;              // fill DeviceMemory::storages
  std::shared_ptr<Interner> texts;  // the interner that all tables share; if absent, each table has its own interner
  size_t module_depth = 3;          // memory is summed for each module path, cut after this many components
  CostSources costs;
  bool candidates = true;  // list the cheapest values to recompute
  std::string target;      // see DeviceMemory::target
};

// Returns the first `depth` components of a module path, with "*" in place of numbers:
// "layers.*.attention". Returns "(no module)" for an empty path.
std::string module_group(std::string_view path, size_t depth);

// Merges three or more neighbouring rows if they have equal bytes and equal numbers of storages.
// The merged row is named "layers.0 .. layers.15 (16 alike)".
std::vector<MemoryShare> fold_shares(const std::vector<MemoryShare>& shares);

// Returns the symbols on which sizes depend.
std::vector<SymbolRow> symbol_rows(const Footprint& footprint);

// Describes a footprint in rows. O(nodes + edges + storages log storages).
GraphMemory describe_memory(const Footprint& footprint, const MemoryView& view);

// True if the peak DeviceMemory::bytes is only a lower bound, because some sizes of storages or of
// workspaces are unknown.
bool is_lower_bound(const GraphMemory& memory, const DeviceMemory& device);

// Returns the first few symbols as text: "s0 = 8 (2..64), u0 unknown (0..)". Returns an empty text
// if there are no symbols.
std::string symbols_text(const std::vector<SymbolRow>& symbols);
inline constexpr size_t kMaxShownSymbols = 5;  // the most symbols that one line lists
// Returns text such as "8.00 MiB (8388608 B) to 64.00 MiB (67108864 B)" or "at least 8.00 MiB
// (8388608 B), with no upper bound".
std::string range_text(const PeakRange& range);

// Returns the assumption about storages that the graph resizes, as one line without a period.
std::string resized_text(size_t count);

// Returns text such as "a step of 2 runs (forward, backward): 26 inputs from outputs of earlier
// runs, 0 shared with earlier runs".
std::string step_text(const std::vector<StepRunRow>& step);
nlohmann::ordered_json step_run_json(const StepRunRow& run);

// Returns text such as "fits on h100, 56.13 GiB to spare" or "does not fit on h100: %mm_294
// requests 256.00 MiB, but 0.20 GiB are left".
std::string verdict_text(const DeviceMemory& device);
// Returns the advice as text, such as "`fxopt opt IN -o smaller.pb --passes
// 'sac{policy=per-op},remat'` makes it fit: reserved peak 33.53 GiB, 44.54 GiB to spare, +9.0 %
// operations, +2.1 % bytes moved". If no tried policy is sufficient, the text says so and gives the
// lowest peak that was reached.
std::string advice_text(const Advice& advice);

void print_memory(std::ostream& out, const GraphMemory& memory);
// kTop writes only DeviceMemory::top. kAll writes every storage of DeviceMemory::storages.
enum class Storages { kTop, kAll };
nlohmann::ordered_json memory_json(const GraphMemory& memory, Storages storages = Storages::kTop);

// Reads the fields of memory_json() that a comparison of two reports needs: the peaks and their
// nodes, the shares, and the listed storages. Throws nlohmann::json::exception if the fields are
// missing or have another type.
GraphMemory memory_from_json(const nlohmann::ordered_json& json);

}  // namespace fxopt
