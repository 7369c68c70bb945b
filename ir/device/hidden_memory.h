#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/device/call_formulas.h"
#include "ir/device/profile.h"
#include "ir/graph/graph.h"
#include "ir/graph/module.h"

namespace fxopt {

// Memory that one call takes in addition to its outputs.
struct HiddenBlock {
  const HiddenRow* row = nullptr;
  std::optional<int64_t> bytes;  // above 0; absent if unknown for this call
};

// The hidden memory of one graph's calls by a device profile. Refers to the graph, to the profile
// and to `values`. `values` are the values of symbols, see symbol_values().
class HiddenMemory {
 public:
  HiddenMemory(const Graph& graph, const DeviceProfile& profile, const SymbolValues& values);

  // Returns the rows that apply to the call, in the order of the profile. Rows that take no memory
  // are left out. The result is valid until the next call of this function. Takes the time of
  // CallFormulas::of().
  const std::vector<HiddenBlock>& of(NodeId node);

 private:
  CallFormulas formulas_;
  std::vector<HiddenBlock> blocks_;
};

}  // namespace fxopt
