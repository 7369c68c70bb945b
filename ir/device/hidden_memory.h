#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/device/call_symbol.h"
#include "ir/device/profile.h"
#include "ir/graph/graph.h"
#include "ir/graph/module.h"

namespace fxopt {

// Memory that one call takes besides its outputs.
struct HiddenBlock {
  const HiddenRow* row = nullptr;
  std::optional<int64_t> bytes;  // above 0; absent: the call does not show it
};

// What the calls of one graph take by a device profile. Refers to both.
class HiddenMemory {
 public:
  // `values`: of the module's symbols, see symbol_values().
  HiddenMemory(const Graph& graph, const DeviceProfile& profile, const SymbolValues& values);

  // The rows that hold for the call, in the order of the profile, but for those that take nothing. Rows for the exact
  // overload hold beside those for every overload. Good until the next call of this function. Expressions are evaluated
  // once for calls that look alike: O(symbols of the rows * log(different calls)), else O(size of the expressions).
  const std::vector<HiddenBlock>& of(NodeId node);

 private:
  using Seen = std::vector<std::optional<int64_t>>;  // the symbols' values

  struct BoundRow {
    const HiddenRow* row = nullptr;
    std::vector<StringId> names;
    std::vector<CallSymbol> symbols;
    std::map<Seen, std::optional<int64_t>> known;
  };
  struct Bound {
    bool is_known = false;
    std::vector<BoundRow> rows;
  };

  std::vector<BoundRow>& rows_of(TargetId target);
  BoundRow bind(const HiddenRow& row, const Op& op) const;
  std::optional<int64_t> evaluate(NodeId node, BoundRow& bound);

  const Graph& graph_;
  const DeviceProfile& profile_;
  const SymbolValues& values_;
  IdMap<TargetId, Bound> bound_;
  std::vector<HiddenBlock> blocks_;
};

// True when the row is about calls of `op`.
bool is_about(const HiddenRow& row, const Op& op);

// Why a row cannot be used for `op`: a symbol that is neither a constant nor names an argument or a property. Empty
// when it can. O(symbols).
std::string explain_misfit(const DeviceProfile& profile, const HiddenRow& row, const Op& op);

}  // namespace fxopt
