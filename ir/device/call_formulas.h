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

// The rows of a profile that hold for calls of one graph, with their values. Refers to the graph,
// the profile and the values.
class CallFormulas {
 public:
  struct Answer {
    const CallRow* row = nullptr;
    std::optional<int64_t> value;  // absent: unknown for this call
  };

  // `rows` belong to `profile`. `values` are the module's symbols, see symbol_values().
  CallFormulas(const Graph& graph, const DeviceProfile& profile, std::vector<const CallRow*> rows,
               const SymbolValues& values);

  // In the order of the rows. Rows for the exact overload and for every overload both hold. Valid
  // until the next call of this function. Expressions are evaluated once for calls that look alike:
  // O(symbols of the rows * log(different calls)), else O(size of the expressions).
  const std::vector<Answer>& of(NodeId node);

 private:
  using Seen = std::vector<std::optional<int64_t>>;  // the symbols' values

  struct BoundRow {
    const CallRow* row = nullptr;
    std::vector<StringId> names;
    std::vector<CallSymbol> symbols;
    std::map<Seen, std::optional<int64_t>> known;
  };
  struct Bound {
    bool is_known = false;
    std::vector<BoundRow> rows;
  };

  std::vector<BoundRow>& rows_of(TargetId target);
  BoundRow bind(const CallRow& row, const Op& op) const;
  std::optional<int64_t> evaluate(NodeId node, BoundRow& bound);

  const Graph& graph_;
  const DeviceProfile& profile_;
  std::vector<const CallRow*> rows_;
  const SymbolValues& values_;
  IdMap<TargetId, Bound> bound_;
  std::vector<Answer> answers_;
};

// False for an operator that runs more than its name shows, such as a subgraph, and for one without
// a description. Without a row, their figures are unknown rather than zero.
bool is_described(const Op& op);

// True if the row is about calls of `op`.
bool is_about(const CallRow& row, const Op& op);

// Why a row cannot be used for `op`: a symbol that is neither a constant nor an argument or a
// property. Empty if it can. O(symbols).
std::string explain_misfit(const DeviceProfile& profile, const CallRow& row, const Op& op);

}  // namespace fxopt
