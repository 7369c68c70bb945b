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
  std::optional<int64_t> bytes;  // above 0; absent: unknown for this call
};

// Hidden memory of one graph's calls by a device profile. Refers to both, and to `values`, see
// symbol_values().
class HiddenMemory {
 public:
  HiddenMemory(const Graph& graph, const DeviceProfile& profile, const SymbolValues& values);

  // The rows that hold for the call, in the order of the profile, without those that take nothing.
  // Valid until the next call of this function. Complexity as CallFormulas::of().
  const std::vector<HiddenBlock>& of(NodeId node);

 private:
  CallFormulas formulas_;
  std::vector<HiddenBlock> blocks_;
};

}  // namespace fxopt
