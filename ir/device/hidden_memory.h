#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/device/call_formulas.h"
#include "ir/device/profile.h"
#include "ir/graph/graph.h"
#include "ir/graph/module.h"

namespace fxopt {

// One block of memory that a call takes in addition to its outputs, such as a workspace.
struct HiddenBlock {
  const HiddenRow* row = nullptr;
  std::optional<int64_t> bytes;  // above 0; absent if the size is unknown for this call
};

// The memory that the calls of one graph take in addition to their outputs, computed from the
// statements (HiddenRow) of a device profile. `values` are the values of symbols, see
// symbol_values(). The graph, the profile and `values` must outlive this object.
class HiddenMemory {
 public:
  HiddenMemory(const Graph& graph, const DeviceProfile& profile, const SymbolValues& values);

  // Returns the blocks that the call `node` takes, in the order of the profile's statements. Blocks
  // of 0 bytes are left out. The result is valid until the next call of this function. Complexity:
  // as CallFormulas::of().
  const std::vector<HiddenBlock>& of(NodeId node);

 private:
  CallFormulas formulas_;
  std::vector<HiddenBlock> blocks_;
};

}  // namespace fxopt
