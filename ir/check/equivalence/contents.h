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

// The contents of a storage whose parts were written by different calls. A piece is a written range
// of bytes. Each piece has a hash that identifies its content. Bytes outside of all pieces keep the
// storage's earlier content. The order of writes to disjoint parts therefore does not matter.
class Pieces {
 public:
  // Records a write to the bytes `reach`. `content` is a hash that identifies the written content.
  // O(log pieces + pieces that overlap `reach` or have a higher position).
  void write(const ByteRange& reach, const Hash128& content);
  // Returns a hash that identifies the current content of the bytes `reach`. `rest` is the hash for
  // bytes that no piece covers. O(log pieces + pieces in `reach`).
  Hash128 seen(const ByteRange& reach, const Hash128& rest) const;
  // If the bytes `reach` are exactly one piece, returns the hash of this piece's content. If the
  // bytes consist of several pieces, or are only a part of a piece, returns nothing. O(log pieces).
  std::optional<Hash128> exactly(const ByteRange& reach) const;
  // Returns the hash of the content of the whole storage. `rest` is the hash for bytes that no
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
  // Each piece has a hash of its position and content. `sum_` is the sum of these hashes. Unlike a
  // hash of the list, this sum can be updated in O(1) when a piece is added or removed.
  Hash128 sum_;
};

}  // namespace fxopt
