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

// A tensor without its bytes: the place of its elements in its storage, and how they are read.
// Sizes, strides and offset are in elements.
struct Geometry {
  DType dtype = DType::kUnspecified;
  Layout layout = Layout::kStrided;
  bool conjugate = false;
  bool negative = false;
  Hash128 rest;  // device, subclass, placements: no view changes them
  std::vector<SymInt> sizes;
  std::vector<SymInt> strides;
  SymInt offset;

  size_t rank() const { return sizes.size(); }
  SymInt num_elements() const;
};

// The geometry of a recorded tensor with known sizes and strides; nothing for any other.
// O(rank + placements).
std::optional<Geometry> geometry_of(const Module& module, SymInts& integers, const Tensor& tensor);

// Whether two geometries are the same. Strides of dimensions of one element do not count, because
// no access uses them. O(rank).
bool same_geometry(const Geometry& a, const Geometry& b);

// The strides of a dense row-major tensor. A size below 1 counts as 1, as in the framework.
std::vector<SymInt> row_major_strides(const std::vector<SymInt>& sizes);

// Whether `geometry` is dense and row-major. False if that depends on symbols. Strides of
// dimensions of one element do not count. O(rank).
bool is_row_major(const Geometry& geometry);

// Strides that show the elements of `from` under other sizes without moving them. `sizes` must have
// as many elements (ATen's computeStride, TensorUtils.cpp).
enum class Restride : uint8_t {
  kView,     // `strides` holds them
  kCopy,     // no such strides exist
  kUnknown,  // it depends on symbols
};
// O(rank of both).
Restride restride(const Geometry& from, const std::vector<SymInt>& sizes, std::vector<SymInt>& strides);

}  // namespace fxopt
