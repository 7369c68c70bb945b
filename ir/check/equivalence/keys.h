#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "core/hash.h"
#include "core/hash_table.h"
#include "ir/graph/module.h"
#include "ir/values/geometry.h"
#include "ir/values/sym_int.h"

// 128-bit hashes (keys) for everything that the prover compares, such as constants, geometries,
// calls and contents. Equal keys represent equal things, even if the keys come from different
// modules.

namespace fxopt {

// The kind of thing that a key (a 128-bit hash) identifies. The kind is part of the first word that
// is hashed. Keys of different kinds therefore differ.
enum class KeyKind : uint8_t {
  kText,
  kGeometry,
  kUnknownGeometry,
  kNone,
  kBool,
  kInt,
  kFloat,
  kName,
  kList,
  kDict,
  kTensor,
  kPlain,
  kDefault,
  kInput,
  kAttribute,
  kData,
  kCall,
  kResult,
  kWrite,
  kMayWrite,
  kReady,
  kPending,
  kView,
  kElement,
  kDraw,
  kWorld,
  kMode,
  kIssue,
  kLineage,
  kGraph,
  kPiece,
  kElements,
  kSide,
  kMember,
  kGathered,
  kSummed,
};

// Returns the first of the words that make_key() hashes. `detail` has up to 56 bits.
constexpr uint64_t key_tag(KeyKind kind, uint64_t detail = 0) { return static_cast<uint64_t>(kind) | detail << 8U; }

// Returns the key, a 128-bit hash, of a sequence of words. O(words).
Hash128 make_key(std::span<const uint64_t> words);
// Returns the key of a sequence of keys, integers and enumerators.
template <class... Parts>
Hash128 make_key(KeyKind kind, const Parts&... parts) {
  std::array<uint64_t, (size_t{1} + ... + (std::is_same_v<Parts, Hash128> ? 2 : 1))> words = {key_tag(kind)};
  size_t size = 1;
  [[maybe_unused]] const auto add = [&](const auto& part) {
    if constexpr (std::is_same_v<decltype(part), const Hash128&>) {
      words[size++] = part.high;
      words[size++] = part.low;
    } else {
      words[size++] = static_cast<uint64_t>(part);
    }
  };
  (add(parts), ...);
  return make_key(std::span<const uint64_t>(words));
}
inline void add_key(std::vector<uint64_t>& words, const Hash128& key) {
  words.push_back(key.high);
  words.push_back(key.low);
}
// Adds several keys.
template <class... Keys>
void add_keys(std::vector<uint64_t>& words, const Keys&... keys) {
  (add_key(words, keys), ...);
}

// A buffer for the words that make_key() hashes. Adding a word is as fast as a write to an array.
class KeyWords {
 public:
  void clear() { size_ = 0; }
  [[gnu::always_inline]] void add(uint64_t word) {
    if (size_ == words_.size()) grow();
    words_[size_++] = word;
  }
  [[gnu::always_inline]] void add(const Hash128& key) {
    if (size_ + 2 > words_.size()) grow();
    words_[size_++] = key.high;
    words_[size_++] = key.low;
  }
  // Adds several words and keys.
  template <class... Words>
  [[gnu::always_inline]] void add_all(const Words&... words) {
    (add(words), ...);
  }
  // Removes the words after the first `size`.
  void cut(size_t size) { size_ = size; }
  size_t size() const { return size_; }
  std::span<uint64_t> all() { return std::span(words_).first(size_); }

 private:
  void grow();

  std::vector<uint64_t> words_ = std::vector<uint64_t>(64);
  size_t size_ = 0;
};

// A table of different tensor geometries (sizes, strides, offset, dtype), each with a GeometryId. A
// geometry that cannot be calculated has an id but no Geometry.
using GeometryId = Id<struct GeometryTag>;

class GeometryTable {
 public:
  GeometryId add(const Geometry& geometry);
  // Adds a geometry that cannot be calculated. `name` is a hash that identifies the geometry. If
  // learn() replaced this geometry, returns the replacement.
  GeometryId add_unknown(const Hash128& name);
  // Makes later calls of add_unknown() return `known` instead of `unknown`. Returns false if
  // `unknown` was replaced before.
  bool learn(GeometryId unknown, GeometryId known) { return learned_.emplace(unknown, known).second; }

  // Returns a hash of the geometry without the strides of dimensions that have size 1. No access
  // uses these strides. Two geometries that differ only in these strides have different ids and the
  // same hash.
  const Hash128& key(GeometryId id) const { return keys_[id.index()]; }
  // Returns a hash of the geometry with all strides. A view may depend on a stride that key()
  // leaves out. For example, suppose that dimension 0 of `x` has size 1. The slice `x[1:]` is then
  // empty, but its offset depends on the stride of dimension 0:
  //
  //   offset of x[1:]  =  offset of x + 1 * stride of dimension 0
  const Hash128& exact_key(GeometryId id) const { return exact_keys_[id.index()]; }
  // Returns null if the geometry cannot be calculated. The pointer is valid until the next geometry
  // is added.
  const Geometry* find(GeometryId id) const {
    const std::optional<Geometry>& known = known_[id.index()];
    return known.has_value() ? &*known : nullptr;
  }

 private:
  GeometryId add(const Hash128& exact_key, const Hash128& key, const Geometry* known);

  HashMap<Hash128, GeometryId, Hash128Hash> index_;  // by the exact key
  HashMap<GeometryId, GeometryId> learned_;
  std::vector<Hash128> keys_;
  std::vector<Hash128> exact_keys_;
  std::vector<std::optional<Geometry>> known_;
};

// Hashes of the strings, integers and geometries that one module records. Each hash is computed
// once. Entries that are added to the module later get hashes as well.
class ModuleKeys {
 public:
  ModuleKeys(const Module& module, GeometryTable& geometries)
      : module_(&module), geometries_(&geometries), integers_(module) {}

  Hash128 text(StringId id);
  SymInt integer(ExprId id) { return integers_.of(id); }
  // Returns the geometry that is recorded for a tensor. O(1), except for the first tensor with this
  // geometry.
  GeometryId geometry(const Tensor& tensor) {
    const size_t place = (tensor.sizes.index() * 31 + tensor.strides.index()) % kRecent;
    Recorded& recent = recent_[place];
    if (!recent.id.is_valid() || !same_record(recent.tensor, tensor)) recent = {tensor, look_up(tensor)};
    return recent.id;
  }

 private:
  struct Recorded {
    Tensor tensor;
    GeometryId id;
  };
  static constexpr size_t kRecent = 256;

  // Whether two recorded tensors of one module are equal. Storage and gradient are not compared.
  static bool same_record(const Tensor& a, const Tensor& b) {
    return a.sizes == b.sizes && a.strides == b.strides && a.dtype == b.dtype && a.layout == b.layout &&
           a.conjugate == b.conjugate && a.negative == b.negative && a.offset == b.offset && a.device == b.device &&
           a.mesh == b.mesh && a.subclass == b.subclass && a.placements == b.placements;
  }
  GeometryId look_up(const Tensor& tensor);

  const Module* module_;
  GeometryTable* geometries_;
  SymInts integers_;
  std::vector<std::optional<Hash128>> texts_;  // hashes of strings, by string id
  HashMap<uint64_t, std::vector<Recorded>> recorded_;
  // A cache of recorded tensors, indexed by sizes and strides.
  std::vector<Recorded> recent_ = std::vector<Recorded>(kRecent);
};

}  // namespace fxopt
