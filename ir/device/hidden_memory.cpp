#include "ir/device/hidden_memory.h"

#include <utility>

namespace fxopt {

HiddenMemory::HiddenMemory(const Graph& graph, const DeviceProfile& profile, const SymbolValues& values)
    : graph_(graph), profile_(profile), values_(values) {}

const std::vector<HiddenBlock>& HiddenMemory::of(NodeId node) {
  blocks_.clear();
  if (!graph_[node].is_call()) return blocks_;
  for (BoundRow& bound : rows_of(graph_[node].target)) {
    const std::optional<int64_t> bytes = evaluate(node, bound);
    if (bytes.value_or(1) > 0) blocks_.push_back({bound.row, bytes});
  }
  return blocks_;
}

std::vector<HiddenMemory::BoundRow>& HiddenMemory::rows_of(TargetId target) {
  if (!bound_.get(target).is_known) {
    Bound bound;
    bound.is_known = true;
    const Op& op = *graph_.module().target(target).op;
    for (const HiddenRow& row : profile_.hidden) {
      if (is_about(row, op)) bound.rows.push_back(bind(row, op));
    }
    bound_[target] = std::move(bound);
  }
  return bound_[target].rows;
}

HiddenMemory::BoundRow HiddenMemory::bind(const HiddenRow& row, const Op& op) const {
  BoundRow bound;
  bound.row = &row;
  for (const StringId name : profile_.exprs.symbols(row.bytes)) {
    if (profile_.constants.count(name) != 0) continue;
    std::optional<CallSymbol> symbol = find_call_symbol(profile_.strings[name], op);
    if (!symbol.has_value()) continue;  // it has no value, so the row's bytes are unknown where they depend on it
    bound.names.push_back(name);
    bound.symbols.push_back(std::move(*symbol));
  }
  return bound;
}

std::optional<int64_t> HiddenMemory::evaluate(NodeId node, BoundRow& bound) {
  Seen seen;
  seen.reserve(bound.symbols.size());
  for (const CallSymbol& symbol : bound.symbols) seen.push_back(value_of(graph_, node, symbol, values_));
  const auto found = bound.known.find(seen);
  if (found != bound.known.end()) return found->second;
  SymbolValues values = profile_.constants;
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen[i].has_value()) values[bound.names[i]] = *seen[i];
  }
  const std::optional<int64_t> bytes = profile_.exprs.evaluate(bound.row->bytes, values);
  bound.known.emplace(std::move(seen), bytes);
  return bytes;
}

bool is_about(const HiddenRow& row, const Op& op) {
  if (!row.every_overload) return row.target == op.name;
  return std::string_view(op.name).substr(0, op.name.rfind('.')) == row.target;
}

std::string explain_misfit(const DeviceProfile& profile, const HiddenRow& row, const Op& op) {
  for (const StringId name : profile.exprs.symbols(row.bytes)) {
    if (profile.constants.count(name) != 0 || find_call_symbol(profile.strings[name], op).has_value()) continue;
    return "'" + std::string(profile.strings[name]) + "' is neither a constant nor a property of an argument or an " +
           "output of " + op.name;
  }
  return {};
}

}  // namespace fxopt
