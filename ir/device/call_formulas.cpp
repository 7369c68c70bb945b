#include "ir/device/call_formulas.h"

#include <utility>

namespace fxopt {

CallFormulas::CallFormulas(const Graph& graph, const DeviceProfile& profile, std::vector<const CallRow*> rows,
                           const SymbolValues& values)
    : graph_(graph), profile_(profile), rows_(std::move(rows)), values_(values) {}

const std::vector<CallFormulas::Answer>& CallFormulas::of(NodeId node) {
  answers_.clear();
  if (!graph_[node].is_call()) return answers_;
  for (BoundRow& bound : rows_of(graph_[node].target)) answers_.push_back({bound.row, evaluate(node, bound)});
  return answers_;
}

std::vector<CallFormulas::BoundRow>& CallFormulas::rows_of(TargetId target) {
  if (!bound_.get(target).is_known) {
    Bound bound;
    bound.is_known = true;
    const Op& op = *graph_.module().target(target).op;
    for (const CallRow* row : rows_) {
      if (is_about(*row, op)) bound.rows.push_back(bind(*row, op));
    }
    bound_[target] = std::move(bound);
  }
  return bound_[target].rows;
}

CallFormulas::BoundRow CallFormulas::bind(const CallRow& row, const Op& op) const {
  BoundRow bound;
  bound.row = &row;
  for (const StringId name : profile_.exprs.symbols(row.value)) {
    if (profile_.constants.count(name) != 0) continue;
    std::optional<CallSymbol> symbol = find_call_symbol(profile_.strings[name], op);
    // If the symbol has no value, the values that depend on it are unknown.
    if (!symbol.has_value()) continue;
    bound.names.push_back(name);
    bound.symbols.push_back(std::move(*symbol));
  }
  return bound;
}

std::optional<int64_t> CallFormulas::evaluate(NodeId node, BoundRow& bound) {
  Seen seen;
  seen.reserve(bound.symbols.size());
  for (const CallSymbol& symbol : bound.symbols) seen.push_back(value_of(graph_, node, symbol, values_));
  const auto found = bound.known.find(seen);
  if (found != bound.known.end()) return found->second;
  SymbolValues values = profile_.constants;
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen[i].has_value()) values[bound.names[i]] = *seen[i];
  }
  const std::optional<int64_t> value = profile_.exprs.evaluate(bound.row->value, values);
  bound.known.emplace(std::move(seen), value);
  return value;
}

bool is_described(const Op& op) {
  const bool runs_others = op.has_subgraphs || op.operator_arg >= 0 || op.compute == ComputeClass::kHigherOrder ||
                           op.name.starts_with("higher_order.");
  return !runs_others && !op.is_opaque();
}

bool is_about(const CallRow& row, const Op& op) {
  if (!row.every_overload) return row.target == op.name;
  return std::string_view(op.name).substr(0, op.name.rfind('.')) == row.target;
}

std::string explain_misfit(const DeviceProfile& profile, const CallRow& row, const Op& op) {
  for (const StringId name : profile.exprs.symbols(row.value)) {
    if (profile.constants.count(name) != 0 || find_call_symbol(profile.strings[name], op).has_value()) continue;
    return "'" + std::string(profile.strings[name]) + "' is neither a constant nor a property of an argument or an " +
           "output of " + op.name;
  }
  return {};
}

}  // namespace fxopt
