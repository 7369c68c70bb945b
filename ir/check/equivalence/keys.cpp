#include "ir/check/equivalence/keys.h"

namespace fxopt {
namespace {

Hash128 geometry_key(const Geometry& geometry, bool is_exact) {
  std::vector<uint64_t> words = {static_cast<uint64_t>(KeyKind::kGeometry), static_cast<uint64_t>(geometry.dtype),
                                 static_cast<uint64_t>(geometry.layout), geometry.conjugate ? 1U : 0U,
                                 geometry.negative ? 1U : 0U};
  add_key(words, geometry.rest);
  for (size_t i = 0; i < geometry.rank(); ++i) {
    const bool has_stride = (is_exact || !geometry.sizes[i].is(1)) && i < geometry.strides.size();
    add_keys(words, geometry.sizes[i].key(), has_stride ? geometry.strides[i].key() : SymInt(0).key());
  }
  add_key(words, geometry.offset.key());
  return make_key(words);
}

uint64_t hash_record(const Tensor& tensor) {
  const auto pair = [](uint64_t high, uint64_t low) { return high << 32U | low; };
  uint64_t hash = hash_combine(static_cast<uint64_t>(tensor.dtype), pair(tensor.sizes.index(), tensor.strides.index()));
  hash = hash_combine(hash, pair(tensor.device.index(), tensor.placements));
  return hash_combine(hash, static_cast<uint64_t>(tensor.offset.value));
}

}  // namespace

Hash128 make_key(std::span<const uint64_t> words) { return hash_words(words); }

void KeyWords::grow() { words_.resize(2 * size_); }

GeometryId GeometryTable::add(const Hash128& exact_key, const Hash128& key, const Geometry* known) {
  const auto [found, is_new] = index_.emplace(exact_key, GeometryId(keys_.size()));
  if (is_new) {
    keys_.push_back(key);
    exact_keys_.push_back(exact_key);
    known_.push_back(known == nullptr ? std::nullopt : std::optional(*known));
  }
  return found->second;
}

GeometryId GeometryTable::add(const Geometry& geometry) {
  return add(geometry_key(geometry, true), geometry_key(geometry, false), &geometry);
}

GeometryId GeometryTable::add_unknown(const Hash128& name) {
  const Hash128 key = make_key(KeyKind::kUnknownGeometry, name);
  const GeometryId id = add(key, key, nullptr);
  const auto learned = learned_.find(id);
  return learned == learned_.end() ? id : learned->second;
}

Hash128 ModuleKeys::text(StringId id) {
  if (!id.is_valid()) return make_key(KeyKind::kNone);
  if (id.index() >= texts_.size()) texts_.resize(id.index() + 1);
  std::optional<Hash128>& known = texts_[id.index()];
  if (!known.has_value()) known = hash_text(module_->text(id));
  return *known;
}

GeometryId ModuleKeys::look_up(const Tensor& tensor) {
  const uint64_t hash = hash_record(tensor);
  std::vector<Recorded>& alike = recorded_[hash];
  for (const Recorded& each : alike) {
    if (same_record(each.tensor, tensor)) return each.id;
  }
  const std::optional<Geometry> known = geometry_of(*module_, integers_, tensor);
  GeometryId id;
  if (known.has_value()) {
    id = geometries_->add(*known);
  } else {
    // Sizes or strides are missing, so the other recorded fields distinguish tensors.
    std::vector<uint64_t> words = {static_cast<uint64_t>(tensor.dtype), static_cast<uint64_t>(tensor.layout)};
    add_keys(words, text(tensor.device), text(tensor.subclass));
    if (tensor.sizes.is_valid()) {
      for (const Dim& size : module_->dims(tensor.sizes)) add_key(words, integers_.of(size).key());
    }
    id = geometries_->add_unknown(make_key(words));
  }
  alike.push_back({tensor, id});
  return id;
}

}  // namespace fxopt
