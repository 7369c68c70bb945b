#include "ir/values/geometry.h"

#include <algorithm>

namespace fxopt {
namespace {

bool is_static(const std::vector<SymInt>& list) {
  return std::all_of(list.begin(), list.end(), [](const SymInt& item) { return item.is_static(); });
}

bool has_no_elements(const std::vector<SymInt>& sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [](const SymInt& size) { return size.is(0); });
}

// Whether `done` elements are fewer than `wanted`. If a number is symbolic, whether the two differ.
bool is_short(const SymInt& done, const SymInt& wanted) {
  if (done.is_static() && wanted.is_static()) return done.value() < wanted.value();
  return !(done == wanted);
}

// A hash of the properties that views keep.
Hash128 hash_rest(const Module& module, const Tensor& tensor) {
  std::vector<uint64_t> words;
  const auto add = [&](StringId text) {
    const Hash128 hash = hash_text(module.text(text));
    words.insert(words.end(), {text.is_valid() ? 1U : 0U, hash.high, hash.low});
  };
  add(tensor.device);
  add(tensor.mesh);
  add(tensor.subclass);
  if (tensor.placements != 0) {
    for (const Placement& placement : module.placements(tensor.placements)) {
      words.insert(words.end(), {static_cast<uint64_t>(placement.kind), placement.has_dim ? 1U : 0U,
                                 static_cast<uint64_t>(placement.dim), placement.has_split_factor ? 1U : 0U,
                                 static_cast<uint64_t>(placement.split_factor)});
      add(placement.reduce_op);
    }
  }
  return hash_words(words);
}

}  // namespace

std::optional<Geometry> geometry_of(const Module& module, SymInts& integers, const Tensor& tensor) {
  if (!tensor.sizes.is_valid() || !tensor.strides.is_valid()) return std::nullopt;
  Geometry out;
  out.dtype = tensor.dtype;
  out.layout = tensor.layout;
  out.conjugate = tensor.conjugate;
  out.negative = tensor.negative;
  out.rest = hash_rest(module, tensor);
  for (const Dim& size : module.dims(tensor.sizes)) out.sizes.push_back(integers.of(size));
  for (const Dim& stride : module.dims(tensor.strides)) out.strides.push_back(integers.of(stride));
  if (out.sizes.size() != out.strides.size()) return std::nullopt;
  out.offset = integers.of(tensor.offset);
  return out;
}

bool same_geometry(const Geometry& a, const Geometry& b) {
  if (a.dtype != b.dtype || a.layout != b.layout || a.conjugate != b.conjugate || a.negative != b.negative)
    return false;
  if (a.rest != b.rest || a.sizes != b.sizes || !(a.offset == b.offset)) return false;
  for (size_t i = 0; i < a.rank(); ++i) {
    if (!a.sizes[i].is(1) && !(a.strides[i] == b.strides[i])) return false;
  }
  return true;
}

SymInt Geometry::num_elements() const {
  SymInt count = 1;
  for (const SymInt& size : sizes) count = count * size;
  return count;
}

std::vector<SymInt> row_major_strides(const std::vector<SymInt>& sizes) {
  std::vector<SymInt> strides(sizes.size());
  SymInt step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    const bool counts = !sizes[i].is_static() || sizes[i].value() > 1;
    if (counts) step = step * sizes[i];
  }
  return strides;
}

bool is_row_major(const Geometry& geometry) {
  if (has_no_elements(geometry.sizes)) return true;
  SymInt step = 1;
  for (size_t i = geometry.rank(); i-- > 0;) {
    if (geometry.sizes[i].is(1)) continue;
    if (!(geometry.strides[i] == step)) return false;
    step = step * geometry.sizes[i];
  }
  return true;
}

Restride restride(const Geometry& from, const std::vector<SymInt>& sizes, std::vector<SymInt>& strides) {
  const Restride otherwise =
      is_static(from.sizes) && is_static(from.strides) && is_static(sizes) ? Restride::kCopy : Restride::kUnknown;
  strides.assign(sizes.size(), SymInt(1));
  if (from.sizes.empty()) return Restride::kView;
  if (has_no_elements(from.sizes)) {
    strides = from.sizes == sizes ? from.strides : row_major_strides(sizes);
    return Restride::kView;
  }
  size_t left = sizes.size();  // dimensions of the result without strides so far
  SymInt step = from.strides.back();
  SymInt block = 1, done = 1;  // elements that are `step` apart; elements with strides so far
  for (size_t d = from.rank(); d-- > 0;) {
    block = block * from.sizes[d];
    const bool ends = d == 0 || (!from.sizes[d - 1].is(1) && !(from.strides[d - 1] == block * step));
    if (!ends) continue;
    while (left > 0 && (is_short(done, block) || sizes[left - 1].is(1))) {
      --left;
      strides[left] = done * step;
      done = done * sizes[left];
    }
    if (!(done == block)) return otherwise;
    if (d > 0) step = from.strides[d - 1];
    block = 1;
    done = 1;
  }
  return left == 0 ? Restride::kView : otherwise;
}

}  // namespace fxopt
