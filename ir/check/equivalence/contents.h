#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/hash.h"
#include "ir/values/geometry.h"

namespace fxopt {

// The bytes of a storage that a tensor may touch: from its first element to the end of its last
// one.
struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;
  bool is_dense = false;  // every byte belongs to exactly one element
};

// Returns nothing if sizes, strides or offset depend on symbols, if a stride is negative, if the
// layout is not strided, if the dtype has no known size, or if the tensor has no elements. O(rank *
// log rank).
std::optional<ByteRange> byte_range_of(const Geometry& geometry);

// Contents of a storage whose parts were written separately, by name. The rest keeps the earlier
// content. Bytes that no write touched keep their names, so writes to disjoint parts commute.
class Pieces {
 public:
  // Sets the content of a part. O(log pieces), plus moving the pieces after it.
  void write(const ByteRange& reach, const Hash128& content);
  // Returns the content seen in a part. `rest` names the bytes that no piece covers. O(log pieces +
  // pieces in the part).
  Hash128 seen(const ByteRange& reach, const Hash128& rest) const;
  // Returns the content that one write put exactly there. Returns nothing if the part consists of
  // several pieces or is smaller than one. O(log pieces).
  std::optional<Hash128> exactly(const ByteRange& reach) const;
  // Returns the content of the whole storage. O(1).
  Hash128 all(const Hash128& rest) const;
  bool empty() const { return list_.empty(); }

 private:
  struct Piece {
    int64_t begin;
    int64_t end;
    Hash128 content;
  };

  // The first piece that ends after `begin`.
  size_t first_after(int64_t begin) const;
  void count(const Piece& piece, bool is_added);

  std::vector<Piece> list_;  // disjoint, in order
  Hash128 sum_;              // sum over the pieces' names, independent of order
};

}  // namespace fxopt
