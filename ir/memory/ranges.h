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
  // The value used for peaks. If absent, sizes that depend on the symbol are unknown.
  std::optional<int64_t> value;
  bool is_hint = false;  // true if the value is the file's hint
  ValueRange range;      // includes `value`, even if the file's range does not
};

// The ranges of the sizes of a graph's storages. A symbol may have any value in its range. The
// range is recorded in the file, and MemoryOptions may narrow it.
struct SizeRanges {
  std::vector<ValueRange> sizes;  // by BufferId; all bounds are at least 0
  // The module's symbols come first, in the module's order. Other symbols follow in the order of
  // first use.
  std::vector<SizeSymbol> symbols;
};

// Returns the ranges of all sizes. If MemoryOptions::symbols has a value for a symbol and
// MemoryOptions::ranges has no range for this symbol, the symbol has only that value. O(nodes +
// storages + expressions).
SizeRanges size_ranges(const Graph& graph, const StorageMap& storages, const MemoryOptions& options);

// The bounds of a peak.
struct PeakRange {
  int64_t min = 0;
  std::optional<int64_t> max;  // absent if no bound is known, or if the bound is above 2^63 - 1
};

// Returns the range of the ideal peak of the trace's device. The peak includes the storages, and
// also the memory that is kept between steps. The peak is within the range for all values of the
// symbols. Usually, all sizes grow with each symbol. In that case, the peak reaches both ends of
// the range. Returns nothing if all sizes are constant. O(nodes + storages + blocks).
std::optional<PeakRange> ideal_peak_range(const SizeRanges& ranges, const StorageMap& storages,
                                          const MemoryReport& memory, const MemoryTrace& trace);

}  // namespace fxopt
