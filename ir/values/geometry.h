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

// What a tensor is besides its bytes: where its elements lie in its storage and how they are read. Sizes, strides and
// offset are in elements.
struct Geometry {
  DType dtype = DType::kUnspecified;
  Layout layout = Layout::kStrided;
  bool conjugate = false;
  bool negative = false;
  Hash128 rest;  // device, subclass, placements: what no view changes
  std::vector<SymInt> sizes;
  std::vector<SymInt> strides;
  SymInt offset;

  size_t rank() const { return sizes.size(); }
  SymInt num_elements() const;
};

// The geometry of a recorded tensor whose sizes and strides are known; nothing for another. O(rank + placements).
std::optional<Geometry> geometry_of(const Module& module, SymInts& integers, const Tensor& tensor);

// Whether two are the same, but for the strides of dimensions of one element, which nobody steps along. O(rank).
bool same_geometry(const Geometry& a, const Geometry& b);

// The strides of a tensor that lies densely in row-major order; a size below 1 counts as 1, as in the framework.
std::vector<SymInt> row_major_strides(const std::vector<SymInt>& sizes);

// Whether `geometry` is laid out so. False where that depends on symbols. Strides of dimensions of one element are not
// asked for. O(rank).
bool is_row_major(const Geometry& geometry);

// Strides that show the elements of `from` under other sizes without moving them; `sizes` has as many elements
// (ATen's computeStride, TensorUtils.cpp).
enum class Restride : uint8_t {
  kView,     // `strides` holds them
  kCopy,     // there are none
  kUnknown,  // that depends on symbols
};
// O(rank of both).
Restride restride(const Geometry& from, const std::vector<SymInt>& sizes, std::vector<SymInt>& strides);

}  // namespace fxopt
