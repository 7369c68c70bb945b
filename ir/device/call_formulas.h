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

// Finds the rows (CallRow) of a device profile that apply to a call node of a graph. Computes the
// values of these rows, such as the bytes of a workspace. The graph, the profile and the values of
// symbols must outlive this object.
class CallFormulas {
 public:
  struct Answer {
    const CallRow* row = nullptr;
    std::optional<int64_t> value;  // the row's value for the call; absent if unknown
  };

  // `rows` are rows of `profile`. `values` are the values of the module's symbols, see
  // symbol_values().
  CallFormulas(const Graph& graph, const DeviceProfile& profile, std::vector<const CallRow*> rows,
               const SymbolValues& values);

  // Returns the profile's rows that apply to the call `node`, in the order of the profile. Rows for
  // the exact overload and rows for every overload both apply. The result is valid until the next
  // call of this function. Results are cached by the values of the rows' symbols. A cached result
  // takes O(symbols of the rows * log(cached results)). A new result takes O(size of the
  // expressions) in addition.
  const std::vector<Answer>& of(NodeId node);

 private:
  using Seen = std::vector<std::optional<int64_t>>;  // values of the symbols

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

// A profile may have no row for `op`. Returns the meaning of the missing row:
// - true: calls of `op` have 0 flops and take no workspace
// - false: the flops and workspaces of calls of `op` are unknown
//
// Returns false for an operator that runs a subgraph or another operator, and for every operator
// whose name begins with "higher_order.". Also returns false for an opaque operator, because its
// description is incomplete.
bool is_described(const Op& op);

// True if the row applies to calls of `op`.
bool is_about(const CallRow& row, const Op& op);

// Returns the reason why a row cannot be used for `op`, or an empty text if the row can be used.
// The reason names the first symbol of the row that is neither a constant nor a property of an
// argument or output of `op`. O(symbols).
std::string explain_misfit(const DeviceProfile& profile, const CallRow& row, const Op& op);

}  // namespace fxopt
