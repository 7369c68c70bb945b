#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/hash.h"
#include "ir/values/geometry.h"

// What lies in the buffer of a collective that is several in one, for Law::kBucket and Law::kBucketedReduction.

namespace fxopt {

// Tensors side by side, row by row: each row holds `width` elements of each.
//
//   rows = 1, widths 4, 2:   a a a a b b
//   rows = 2, widths 2, 1:   a a b / a a b
struct SideBySide {
  struct Part {
    Hash128 name;
    int64_t width = 0;
    Hash128 data;  // what all of the tensor holds; zero: it does not show all of it
  };
  int64_t rows = 1;
  DType dtype = DType::kUnspecified;  // that elements are counted in
  std::vector<Part> parts;

  int64_t width() const;
};

// The parts that a tensor on the buffer shows, each as a whole and in this order; nothing where it shows less of one, or
// something else. `seen` begins to count where the buffer does. O(parts + rank).
std::optional<std::vector<SideBySide::Part>> parts_seen(const SideBySide& buffer, const Geometry& seen);

}  // namespace fxopt
