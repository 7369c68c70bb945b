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
  std::optional<int64_t> value;  // that peaks are given for; nothing: what depends on it is of unknown size
  bool is_hint = false;          // the value is the file's hint
  ValueRange range;              // with that hint, which the file may have outside of it
};

// The sizes of a graph's storages while symbols range over what the file says, or less of it.
struct SizeRanges {
  std::vector<ValueRange> sizes;    // by BufferId, 0 and more
  std::vector<SizeSymbol> symbols;  // in the order of the module's, then of their first use
};

// A symbol of MemoryOptions::symbols has this one value, if not a range of its own. O(nodes + storages + expressions).
SizeRanges size_ranges(const Graph& graph, const StorageMap& storages, const MemoryOptions& options);

// What a peak is between.
struct PeakRange {
  int64_t min = 0;
  std::optional<int64_t> max;  // nothing where no bound is known, or it is beyond 2^63 - 1
};

// The range of the ideal peak of the trace's device, for storages and for what lives between steps. Whatever values the
// symbols have, the peak lies within; it meets the ends where all sizes grow with each symbol, as they mostly do.
// Nothing where each size is the same number throughout. O(nodes + storages + blocks).
std::optional<PeakRange> ideal_peak_range(const SizeRanges& ranges, const StorageMap& storages,
                                          const MemoryReport& memory, const MemoryTrace& trace);

}  // namespace fxopt
