#include "ir/check/equivalence/named_values.h"

#include <algorithm>

namespace fxopt {

Cell NamedValues::integer(const SymInt& integer) {
  integers_.push_back(integer);
  return {Cell::Kind::kPlain, false, false, static_cast<uint32_t>(integers_.size() - 1), 0, 0};
}

Cell NamedValues::list(std::span<const Cell> parts) {
  Cell made;
  made.kind = Cell::Kind::kContainer;
  made.first = static_cast<uint32_t>(cells_.size());
  made.count = static_cast<uint32_t>(parts.size());
  cells_.insert(cells_.end(), parts.begin(), parts.end());
  return made;
}

Cell NamedValues::dict(std::span<const Cell> parts, std::span<const Hash128> names) {
  Cell made = list(parts);
  made.is_dict = true;
  made.names = static_cast<uint32_t>(names_.size());
  names_.insert(names_.end(), names.begin(), names.end());
  return made;
}

void NamedValues::collect_objects(const Cell& cell, std::vector<uint32_t>& out) const {
  if (cell.kind == Cell::Kind::kTensor) out.push_back(cell.first);
  if (cell.kind != Cell::Kind::kContainer) return;
  for (const Cell& part : parts(cell)) collect_objects(part, out);
}

void NamedValues::collect_objects(const Arg& arg, std::vector<uint32_t>& out) const {
  if (arg.is(ArgKind::kNode)) {
    if (const Cell* cell = find(arg.as_node()); cell != nullptr) collect_objects(*cell, out);
  } else if (arg.has_children()) {
    for (const Arg& child : graph_.pool().children(arg)) collect_objects(child, out);
  }
}

std::optional<SymInt> NamedValues::integer_of(NodeId node) const {
  const Cell* cell = find(node);
  if (cell == nullptr || cell->kind != Cell::Kind::kPlain) return std::nullopt;
  return integer_in(*cell);
}

std::optional<SymInt> NamedValues::integer_of(const Arg& arg, ModuleKeys& keys) const {
  if (arg.is(ArgKind::kInt)) return SymInt(arg.as_int());
  if (arg.is(ArgKind::kExpr)) return keys.integer(arg.as_expr());
  return arg.is(ArgKind::kNode) ? integer_of(arg.as_node()) : std::nullopt;
}

std::optional<uint32_t> NamedValues::element(const Cell& container, const Arg& key, ModuleKeys& keys) const {
  if (container.is_dict) {
    if (!key.is(ArgKind::kString)) return std::nullopt;
    const Hash128 wanted = keys.text(key.as_string());
    for (uint32_t i = 0; i < container.count; ++i) {
      if (name(container, i) == wanted) return i;
    }
    return std::nullopt;
  }
  const std::optional<SymInt> integer = integer_of(key, keys);
  if (!integer.has_value() || !integer->is_static()) return std::nullopt;
  const int64_t index = integer->value() < 0 ? integer->value() + container.count : integer->value();
  if (index < 0 || index >= static_cast<int64_t>(container.count)) return std::nullopt;
  return static_cast<uint32_t>(index);
}

std::optional<std::vector<Cell>> NamedValues::slice(const Cell& container, const Arg& key) const {
  if (container.is_dict || !key.is(ArgKind::kSlice)) return std::nullopt;
  const std::span<const Arg> bounds = graph_.pool().children(key);
  for (const Arg& bound : bounds) {
    if (!bound.is(ArgKind::kNone) && !bound.is(ArgKind::kInt)) return std::nullopt;
  }
  const int64_t step = bounds[2].is(ArgKind::kNone) ? 1 : bounds[2].as_int();
  if (step == 0) return std::nullopt;
  const int64_t count = container.count;
  const int64_t low = step > 0 ? 0 : -1;
  const int64_t high = step > 0 ? count : count - 1;
  const auto bound = [&](const Arg& arg, int64_t otherwise) {
    if (arg.is(ArgKind::kNone)) return otherwise;
    return std::clamp(arg.as_int() < 0 ? arg.as_int() + count : arg.as_int(), low, high);
  };
  const int64_t start = bound(bounds[0], step > 0 ? low : high);
  const int64_t stop = bound(bounds[1], step > 0 ? high : low);
  std::vector<Cell> taken;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    taken.push_back(parts(container)[static_cast<size_t>(i)]);
    if (step > count || step < -count) break;
    i += step;
  }
  return taken;
}

}  // namespace fxopt
