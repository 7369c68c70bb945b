#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/alias/storages.h"
#include "ir/graph/expr_bounds.h"
#include "ir/graph/graph.h"
#include "ir/memory/memory.h"
#include "ir/memory/trace.h"

namespace fxopt {

// A symbol that sizes of storages depend on.
struct SizeSymbol {
  StringId name;
  std::optional<int64_t> value;  // used for peaks; nothing: sizes that depend on it are unknown
  bool is_hint = false;          // the value is the file's hint
  ValueRange range;              // extended to the value, which may exceed the file's range
};

// The sizes of a graph's storages while symbols take all values of the file's ranges, or of
// narrower ones.
struct SizeRanges {
  std::vector<ValueRange> sizes;    // by BufferId, at least 0
  std::vector<SizeSymbol> symbols;  // in the module's order, then in order of first use
};

// A symbol of MemoryOptions::symbols has only this value, unless `ranges` has it.
// O(nodes + storages + expressions).
SizeRanges size_ranges(const Graph& graph, const StorageMap& storages, const MemoryOptions& options);

// The bounds of a peak.
struct PeakRange {
  int64_t min = 0;
  std::optional<int64_t> max;  // nothing: no bound known, or above 2^63 - 1
};

// Returns the range of the ideal peak of the trace's device, for storages and memory kept between
// steps. The peak stays within the range for all values of the symbols. It reaches both ends if all
// sizes grow with each symbol, the usual case. Returns nothing if all sizes are constant.
// O(nodes + storages + blocks).
std::optional<PeakRange> ideal_peak_range(const SizeRanges& ranges, const StorageMap& storages,
                                          const MemoryReport& memory, const MemoryTrace& trace);

}  // namespace fxopt
