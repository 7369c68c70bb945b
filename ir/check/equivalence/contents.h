#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/hash.h"
#include "ir/values/geometry.h"

namespace fxopt {

// The bytes of a storage that a tensor may touch. The range starts at the tensor's first element
// and ends after its last element.
struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;
  bool is_dense = false;  // whether every byte belongs to exactly one element
};

// Returns the bytes that a tensor with this geometry may touch. Returns nothing in these cases:
// - A size, a stride or the offset depends on symbols.
// - A stride is negative.
// - The layout is not strided.
// - The dtype has no known size.
// - The tensor has no elements.
// O(rank * log rank).
std::optional<ByteRange> byte_range_of(const Geometry& geometry);

// The named contents of a storage whose parts were written separately. The rest of the storage
// keeps its earlier content. Bytes that no write touched keep their names, so the order of writes
// to disjoint parts does not matter.
class Pieces {
 public:
  // Sets the content of a part. O(log pieces), plus the time to move the pieces after the part.
  void write(const ByteRange& reach, const Hash128& content);
  // Returns the name of the content in a part. `rest` is the name of the bytes that no piece
  // covers. O(log pieces + pieces in the part).
  Hash128 seen(const ByteRange& reach, const Hash128& rest) const;
  // Returns the content if a single write covered exactly this part. Returns nothing if the part
  // consists of several pieces or is smaller than a piece. O(log pieces).
  std::optional<Hash128> exactly(const ByteRange& reach) const;
  // Returns the name of the content of the whole storage. `rest` is the name of the bytes that no
  // piece covers. O(1).
  Hash128 all(const Hash128& rest) const;
  bool empty() const { return list_.empty(); }

 private:
  struct Piece {
    int64_t begin;
    int64_t end;
    Hash128 content;
  };

  // Returns the index of the first piece that ends after `begin`.
  size_t first_after(int64_t begin) const;
  void count(const Piece& piece, bool is_added);

  std::vector<Piece> list_;  // disjoint pieces, sorted by position
  Hash128 sum_;              // sum of the pieces' names, which does not depend on their order
};

}  // namespace fxopt
