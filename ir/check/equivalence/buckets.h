#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/hash.h"
#include "ir/values/geometry.h"

// The buffer of a bucketed collective, for RewriteRule::kBucket and
// RewriteRule::kBucketedReduction.

namespace fxopt {

// Tensors concatenated row by row: each row holds `width` elements of each tensor.
//
//   rows = 1, widths 4, 2:   a a a a b b
//   rows = 2, widths 2, 1:   a a b / a a b
struct SideBySide {
  struct Part {
    Hash128 name;
    int64_t width = 0;
    Hash128 data;  // the tensor's content if its offset is 0; otherwise zero
  };
  int64_t rows = 1;
  DType dtype = DType::kUnspecified;  // element type that widths count
  std::vector<Part> parts;

  int64_t width() const;
};

// Returns the parts that a tensor on the buffer shows, if it shows only whole parts and in this
// order. Otherwise returns nothing. Offsets of `seen` count from the start of the buffer. O(parts +
// rank).
std::optional<std::vector<SideBySide::Part>> parts_seen(const SideBySide& buffer, const Geometry& seen);

}  // namespace fxopt
