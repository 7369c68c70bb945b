#include "ir/check/equivalence/contents.h"

#include <algorithm>
#include <array>
#include <utility>

#include "ir/check/equivalence/keys.h"

namespace fxopt {
namespace {

Hash128 piece_key(int64_t begin, int64_t end, const Hash128& content) {
  return make_key(KeyKind::kPiece, begin, end, content);
}

}  // namespace

std::optional<ByteRange> byte_range_of(const Geometry& geometry) {
  const int64_t bytes = element_size(geometry.dtype);
  if (geometry.layout != Layout::kStrided || bytes <= 0 || !geometry.offset.is_static()) return std::nullopt;
  std::vector<std::pair<int64_t, int64_t>> steps;  // stride and size of dimensions above size 1
  int64_t last = geometry.offset.value();
  for (size_t i = 0; i < geometry.rank(); ++i) {
    const SymInt& size = geometry.sizes[i];
    if (!size.is_static() || size.value() <= 0) return std::nullopt;
    if (size.is(1)) continue;
    const SymInt& stride = geometry.strides[i];
    if (!stride.is_static() || stride.value() < 0) return std::nullopt;
    int64_t way = 0;
    if (__builtin_mul_overflow(size.value() - 1, stride.value(), &way) || __builtin_add_overflow(last, way, &last)) {
      return std::nullopt;
    }
    steps.emplace_back(stride.value(), size.value());
  }
  ByteRange out;
  if (__builtin_mul_overflow(geometry.offset.value(), bytes, &out.begin) ||
      __builtin_mul_overflow(last, bytes, &last) || __builtin_add_overflow(last, bytes, &out.end)) {
    return std::nullopt;
  }
  std::ranges::sort(steps);
  int64_t next = 1;  // the stride at which the dimensions so far are dense
  out.is_dense = true;
  for (const auto& [stride, size] : steps) {
    out.is_dense = out.is_dense && stride == next;
    if (out.is_dense) next *= size;
  }
  return out;
}

size_t Pieces::first_after(int64_t begin) const {
  return static_cast<size_t>(
      std::partition_point(list_.begin(), list_.end(), [begin](const Piece& piece) { return piece.end <= begin; }) -
      list_.begin());
}

void Pieces::count(const Piece& piece, bool is_added) {
  const Hash128 key = piece_key(piece.begin, piece.end, piece.content);
  sum_.high = is_added ? sum_.high + key.high : sum_.high - key.high;
  sum_.low = is_added ? sum_.low + key.low : sum_.low - key.low;
}

void Pieces::write(const ByteRange& reach, const Hash128& content) {
  const size_t first = first_after(reach.begin);
  size_t last = first;
  std::array<Piece, 3> put;  // the rest of the first piece, the new one, the rest of the last piece
  size_t num_put = 0;
  if (first < list_.size() && list_[first].begin < reach.begin) {
    put[num_put++] = {list_[first].begin, reach.begin, list_[first].content};
  }
  put[num_put++] = {reach.begin, reach.end, content};
  for (; last < list_.size() && list_[last].begin < reach.end; ++last) {
    count(list_[last], false);
    if (list_[last].end > reach.end) put[num_put++] = {reach.end, list_[last].end, list_[last].content};
  }
  for (size_t i = 0; i < num_put; ++i) count(put[i], true);
  const auto at = list_.begin() + static_cast<std::ptrdiff_t>(first);
  const size_t kept = std::min(num_put, last - first);
  std::copy_n(put.begin(), kept, at);
  if (last - first > kept) {
    list_.erase(at + static_cast<std::ptrdiff_t>(kept), list_.begin() + static_cast<std::ptrdiff_t>(last));
  } else {
    list_.insert(at + static_cast<std::ptrdiff_t>(kept), put.begin() + static_cast<std::ptrdiff_t>(kept),
                 put.begin() + static_cast<std::ptrdiff_t>(num_put));
  }
}

Hash128 Pieces::seen(const ByteRange& reach, const Hash128& rest) const {
  const size_t first = first_after(reach.begin);
  if (first == list_.size() || list_[first].begin >= reach.end) return rest;
  if (list_[first].begin <= reach.begin && list_[first].end >= reach.end) return list_[first].content;
  std::vector<uint64_t> words = {static_cast<uint64_t>(KeyKind::kPiece)};
  int64_t covered = 0;
  for (size_t i = first; i < list_.size() && list_[i].begin < reach.end; ++i) {
    const int64_t begin = std::max(list_[i].begin, reach.begin);
    const int64_t end = std::min(list_[i].end, reach.end);
    covered += end - begin;
    add_key(words, piece_key(begin, end, list_[i].content));
  }
  if (covered < reach.end - reach.begin) add_key(words, rest);
  return make_key(words);
}

std::optional<Hash128> Pieces::exactly(const ByteRange& reach) const {
  const size_t first = first_after(reach.begin);
  if (first == list_.size() || list_[first].begin != reach.begin || list_[first].end != reach.end) return std::nullopt;
  return list_[first].content;
}

Hash128 Pieces::all(const Hash128& rest) const {
  if (list_.empty()) return rest;
  return make_key(KeyKind::kPiece, rest, sum_);
}

}  // namespace fxopt
