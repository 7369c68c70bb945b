#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/device/call_formulas.h"
#include "ir/device/profile.h"
#include "ir/graph/graph.h"
#include "ir/graph/module.h"

namespace fxopt {

// Memory that one call takes besides its outputs.
struct HiddenBlock {
  const HiddenRow* row = nullptr;
  std::optional<int64_t> bytes;  // above 0; absent: the call does not show it
};

// What the calls of one graph take by a device profile. Refers to both, and to `values`, see symbol_values().
class HiddenMemory {
 public:
  HiddenMemory(const Graph& graph, const DeviceProfile& profile, const SymbolValues& values);

  // The rows that hold for the call, in the order of the profile, but for those that take nothing. Good until the next
  // call of this function. As fast as CallFormulas::of().
  const std::vector<HiddenBlock>& of(NodeId node);

 private:
  CallFormulas formulas_;
  std::vector<HiddenBlock> blocks_;
};

}  // namespace fxopt
