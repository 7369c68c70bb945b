#include "ir/alias/rank_order.h"

#include <algorithm>
#include <map>

namespace fxopt {
namespace {

// The ranks of a mesh by their coordinates.
class Coordinates {
 public:
  explicit Coordinates(const DeviceMesh& mesh) : mesh_(mesh), strides_(mesh.shape.size(), 1) {
    for (size_t dim = mesh.shape.size(); dim-- > 1;) strides_[dim - 1] = strides_[dim] * mesh.shape[dim];
    for (size_t i = 0; i < mesh.ranks.size(); ++i) places_.emplace(mesh.ranks[i], static_cast<int64_t>(i));
  }

  int64_t at(int64_t rank, size_t dim) const { return places_.at(rank) / strides_[dim] % mesh_.shape[dim]; }

  // Returns the dimensions that the ranks span. Returns nothing if the mesh lacks a rank, or if the
  // ranks do not span whole dimensions.
  std::optional<std::vector<bool>> dims(std::span<const int64_t> ranks) const {
    if (!std::ranges::all_of(ranks, [this](int64_t rank) { return places_.contains(rank); })) return std::nullopt;
    std::vector<bool> varies(mesh_.shape.size(), false);
    int64_t count = 1;
    for (size_t dim = 0; dim < varies.size(); ++dim) {
      for (const int64_t rank : ranks) varies[dim] = varies[dim] || at(rank, dim) != at(ranks[0], dim);
      if (varies[dim]) count *= mesh_.shape[dim];
    }
    if (count != static_cast<int64_t>(ranks.size())) return std::nullopt;
    return varies;
  }

  // Returns the rank that has the coordinates of `along` in the dimensions `dims` and the
  // coordinates of `from` in the other dimensions.
  int64_t moved(int64_t from, int64_t along, const std::vector<bool>& dims) const {
    int64_t place = 0;
    for (size_t dim = 0; dim < dims.size(); ++dim) place += at(dims[dim] ? along : from, dim) * strides_[dim];
    return mesh_.ranks[static_cast<size_t>(place)];
  }

 private:
  const DeviceMesh& mesh_;
  std::vector<int64_t> strides_;
  std::map<int64_t, int64_t> places_;
};

bool are_distinct(std::vector<int64_t> ranks) {
  std::ranges::sort(ranks);
  return std::ranges::adjacent_find(ranks) == ranks.end();
}

}  // namespace

const ProcessGroup* find_group(const Module& module, StringId uid) {
  const auto found = std::ranges::find_if(module.groups, [uid](const ProcessGroup& group) { return group.uid == uid; });
  return found == module.groups.end() || !uid.is_valid() ? nullptr : &*found;
}

std::optional<size_t> own_place(const Module& module, std::span<const int64_t> ranks) {
  if (!module.rank.has_value() || !module.rank->rank.has_value()) return std::nullopt;
  const auto found = std::ranges::find(ranks, *module.rank->rank);
  if (found == ranks.end()) return std::nullopt;
  return static_cast<size_t>(found - ranks.begin());
}

bool is_own_place(const Module& module, std::span<const int64_t> ranks, const SymInt& place, int64_t scale) {
  const std::optional<size_t> own = own_place(module, ranks);
  if (!own.has_value()) return false;
  const int64_t last = static_cast<int64_t>(ranks.size()) - 1;
  bool is_world = module.rank->world_size == last + 1;
  for (size_t i = 0; i < ranks.size(); ++i) is_world = is_world && ranks[i] == static_cast<int64_t>(i);
  const bool is_alone = std::ranges::none_of(module.groups, [&](const ProcessGroup& group) {
    return group.ranks.size() == ranks.size() && !std::equal(ranks.begin(), ranks.end(), group.ranks.begin()) &&
           own_place(module, group.ranks).has_value();
  });
  bool is_symbolic = false;
  for (const Symbol& symbol : module.symbols) {
    if (symbol.kind != SymbolKind::kRank) continue;
    is_symbolic = true;
    if (symbol.min != 0 || symbol.max != last) continue;
    const bool is_place = is_alone && symbol.hint == static_cast<int64_t>(*own);
    const bool is_rank = is_world && symbol.hint == module.rank->rank;
    if ((is_place || is_rank) && place == symbol_named(module.text(symbol.name)) * SymInt(scale)) return true;
  }
  return !is_symbolic && place.is_static() && place == SymInt(static_cast<int64_t>(*own)) * SymInt(scale);
}

std::optional<RankOrder> ranks_of_both(const Module& module, std::span<const int64_t> inner,
                                       std::span<const int64_t> outer) {
  if (!own_place(module, inner).has_value() || !own_place(module, outer).has_value()) return std::nullopt;
  RankOrder order;
  order.ranks.reserve(inner.size() * outer.size());
  for (const DeviceMesh& mesh : module.meshes) {
    const Coordinates coordinates(mesh);
    const std::optional<std::vector<bool>> inner_dims = coordinates.dims(inner), outer_dims = coordinates.dims(outer);
    if (!inner_dims.has_value() || !outer_dims.has_value()) continue;
    for (size_t dim = 0; dim < inner_dims->size(); ++dim) {
      if ((*inner_dims)[dim] && (*outer_dims)[dim]) return std::nullopt;
    }
    const std::vector<std::vector<int64_t>> alike = alike_groups(mesh, inner);
    if (std::ranges::is_sorted(inner) &&
        !std::ranges::all_of(alike, [](const auto& each) { return std::ranges::is_sorted(each); })) {
      return std::nullopt;
    }
    std::vector<int64_t> ranks;
    for (const int64_t of : outer) {
      for (const int64_t rank : inner) ranks.push_back(coordinates.moved(of, rank, *inner_dims));
    }
    if (order.mesh != nullptr && order.ranks != ranks) return std::nullopt;
    order.ranks = std::move(ranks);
    if (order.mesh == nullptr) order.mesh = &mesh;
  }
  if (order.mesh != nullptr) return order;
  const int64_t world = module.rank->world_size.value_or(INT64_MAX), own = *module.rank->rank;
  for (const int64_t of : outer) {
    for (const int64_t rank : inner) {
      int64_t moved = 0;
      if (__builtin_add_overflow(rank, of - own, &moved) || moved < 0 || moved >= world) return std::nullopt;
      order.ranks.push_back(moved);
    }
  }
  if (!are_distinct(order.ranks)) return std::nullopt;
  return order;
}

std::vector<std::vector<int64_t>> alike_groups(const DeviceMesh& mesh, std::span<const int64_t> ranks) {
  const Coordinates coordinates(mesh);
  const std::optional<std::vector<bool>> dims = coordinates.dims(ranks);
  std::vector<std::vector<int64_t>> found;
  if (!dims.has_value()) return found;
  for (const int64_t rank : mesh.ranks) {
    if (coordinates.moved(rank, ranks[0], *dims) != rank)
      continue;  // each group is added once, by its counterpart of ranks[0]
    found.emplace_back();
    for (const int64_t each : ranks) found.back().push_back(coordinates.moved(rank, each, *dims));
  }
  return found;
}

std::vector<StringId> dims_along(const DeviceMesh& mesh, std::span<const int64_t> ranks) {
  const Coordinates coordinates(mesh);
  const std::optional<std::vector<bool>> dims = coordinates.dims(ranks);
  std::vector<StringId> names;
  for (size_t dim = 0; dims.has_value() && dim < dims->size(); ++dim) {
    if ((*dims)[dim] && dim < mesh.dim_names.size()) names.push_back(mesh.dim_names[dim]);
  }
  return names;
}

}  // namespace fxopt
