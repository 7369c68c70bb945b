#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/analysis/storages.h"
#include "ir/graph/expr_bounds.h"
#include "ir/graph/graph.h"
#include "ir/memory/memory.h"

namespace fxopt {

// What the ideal peak of one device is between while symbols range over what the file says, or less of it.
struct PeakRange {
  StringId device;
  int64_t min = 0;
  std::optional<int64_t> max;  // nothing where no bound is known, or it is beyond 2^63 - 1
};

// A symbol that sizes of storages depend on.
struct SizeSymbol {
  StringId name;
  std::optional<int64_t> value;  // that peaks are given for; nothing: what depends on it is of unknown size
  bool is_hint = false;          // the value is the file's hint
  ValueRange range;
};

struct MemoryRanges {
  std::vector<PeakRange> devices;   // that storages of more than one size are on, in the order of the report's
  std::vector<SizeSymbol> symbols;  // in the order of the module's, then of their first use
};

// The ranges of what `memory` has the peaks of, made with the same options. A symbol of
// MemoryOptions::symbols has this one value, if not a range of its own. Between the two ends every value of the symbols
// lies; both are reached where all sizes grow with each symbol, as they mostly do. O(expressions + nodes + storages).
MemoryRanges memory_ranges(const Graph& graph, const StorageMap& storages, const MemoryReport& memory,
                           const MemoryOptions& options);

}  // namespace fxopt
