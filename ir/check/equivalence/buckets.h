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
  // One of the concatenated tensors.
  struct Part {
    // In the result of a `cat`, or in the operand of a collective: a hash of this tensor's
    // elements. In the result of a bucketed collective: a hash of a separate call that computes
    // only this tensor's part of the result. This call is a collective of the same kind, and this
    // tensor is its only operand.
    Hash128 name;
    int64_t width = 0;  // number of elements of this tensor in each row
    // If this tensor starts at offset 0 of its storage: a hash of the content that the tensor shows
    // (NamedMemory::data_key()). Otherwise zero.
    Hash128 data;
  };
  int64_t rows = 1;
  DType dtype = DType::kUnspecified;  // type of the elements
  std::vector<Part> parts;

  int64_t width() const;
};

// Returns the parts of the buffer that the tensor `seen` covers, in order. If `seen` covers a part
// only partially, or covers parts in a different order than the buffer, returns nothing. Offsets of
// `seen` count from the start of the buffer. O(parts + rank).
std::optional<std::vector<SideBySide::Part>> parts_seen(const SideBySide& buffer, const Geometry& seen);

}  // namespace fxopt
