#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/hash.h"
#include "ir/values/geometry.h"

namespace fxopt {

// The bytes of a storage that a tensor may touch: from its first element to the end of its last one.
struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;
  bool is_dense = false;  // each byte of it belongs to one element, and none to two
};

// Nothing where sizes, strides or offset depend on symbols, for other layouts than strided ones, for types of unknown
// size, and for a tensor without elements. O(rank * log rank).
std::optional<ByteRange> byte_range_of(const Geometry& geometry);

// What parts of a storage hold, by name, where they were written apart; the rest holds what the storage held before.
// Bytes that no write touched keep their names, so that writes to disjoint parts may stand in any order.
class Pieces {
 public:
  // The part holds `content` from now on. O(log pieces), and moving those after it.
  void write(const ByteRange& reach, const Hash128& content);
  // What one sees in that part; `rest` names what no piece covers. O(log pieces + pieces in it).
  Hash128 seen(const ByteRange& reach, const Hash128& rest) const;
  // What a single write put exactly there; nothing where the part is made of several or is less than one. O(log pieces).
  std::optional<Hash128> exactly(const ByteRange& reach) const;
  // What all of the storage holds. O(1).
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
  Hash128 sum_;              // of the pieces' names, in any order
};

}  // namespace fxopt
