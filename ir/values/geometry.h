#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/hash.h"
#include "ir/graph/module.h"
#include "ir/graph/types.h"
#include "ir/graph/value.h"
#include "ir/values/sym_int.h"

namespace fxopt {

// A tensor without its bytes: the place of the elements in the storage, and how the elements are
// read. Sizes, strides and offset are in elements.
struct Geometry {
  DType dtype = DType::kUnspecified;
  Layout layout = Layout::kStrided;
  bool conjugate = false;
  bool negative = false;
  Hash128 rest;  // a hash of device, subclass and placements, which no view changes
  std::vector<SymInt> sizes;
  std::vector<SymInt> strides;
  SymInt offset;

  size_t rank() const { return sizes.size(); }
  SymInt num_elements() const;
};

// Returns the geometry of a recorded tensor. Returns nothing if sizes or strides are unknown.
// O(rank + placements).
std::optional<Geometry> geometry_of(const Module& module, SymInts& integers, const Tensor& tensor);

// Whether two geometries are the same. The stride of a dimension with one element is ignored,
// because no access uses it. O(rank).
bool same_geometry(const Geometry& a, const Geometry& b);

// Returns the strides of a dense row-major tensor. A size below 1 counts as 1, as in the framework.
std::vector<SymInt> row_major_strides(const std::vector<SymInt>& sizes);

// Whether `geometry` is dense and row-major. False if the answer depends on symbols. The stride of
// a dimension with one element is ignored. O(rank).
bool is_row_major(const Geometry& geometry);

// The result of restride(): whether a view with other sizes can show a tensor's elements without
// moving them.
enum class Restride : uint8_t {
  kView,     // a view is possible; restride() has set `strides`
  kCopy,     // no strides fit, so the elements must be copied
  kUnknown,  // the answer depends on symbols
};
// Computes the strides of a view that shows the elements of `from` with `sizes`, without moving the
// elements. The product of `sizes` must equal the number of elements of `from`. The rules are those
// of ATen's computeStride (TensorUtils.cpp). O(rank of both).
Restride restride(const Geometry& from, const std::vector<SymInt>& sizes, std::vector<SymInt>& strides);

}  // namespace fxopt
