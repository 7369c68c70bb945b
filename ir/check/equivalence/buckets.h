#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/hash.h"
#include "ir/values/geometry.h"

// The buffer of a bucketed collective. RewriteRule::kBucket and RewriteRule::kBucketedReduction
// apply to such collectives.

namespace fxopt {

// Tensors concatenated row by row. Each row contains `width` elements of each tensor:
//
//   rows = 1, widths 4, 2:   a a a a b b
//   rows = 2, widths 2, 1:   a a b / a a b
struct SideBySide {
  struct Part {
    Hash128 name;
    int64_t width = 0;
    Hash128 data;  // content of the tensor if its offset is 0, otherwise zero
  };
  int64_t rows = 1;
  DType dtype = DType::kUnspecified;  // type of the elements; widths are numbers of elements
  std::vector<Part> parts;

  int64_t width() const;
};

// Returns the parts of the buffer that the tensor `seen` covers, in order. If `seen` covers a part
// only partially, or covers parts in a different order than the buffer, returns nothing. Offsets of
// `seen` count from the start of the buffer. O(parts + rank).
std::optional<std::vector<SideBySide::Part>> parts_seen(const SideBySide& buffer, const Geometry& seen);

}  // namespace fxopt
