#include "ir/check/equivalence/buckets.h"

namespace fxopt {

int64_t SideBySide::width() const {
  int64_t sum = 0;
  for (const Part& part : parts) sum += part.width;
  return sum;
}

std::optional<std::vector<SideBySide::Part>> parts_seen(const SideBySide& buffer, const Geometry& seen) {
  const SymInt count = seen.num_elements();
  if (seen.dtype != buffer.dtype) return std::nullopt;
  if (!seen.offset.is_static() || !count.is_static() || count.value() % buffer.rows != 0) return std::nullopt;
  const int64_t width = buffer.width(), columns = count.value() / buffer.rows, begin = seen.offset.value();
  const int64_t end = begin + columns;
  if (buffer.rows == 1 || columns == width) {
    if (!is_row_major(seen)) return std::nullopt;
    if (buffer.rows != 1 && begin != 0) return std::nullopt;
  } else {
    const bool are_columns = seen.rank() == 2 && seen.sizes[0].is(buffer.rows) && seen.strides[0].is(width) &&
                             (seen.sizes[1].is(1) || seen.strides[1].is(1));
    if (!are_columns) return std::nullopt;
  }
  std::vector<SideBySide::Part> found;
  int64_t at = 0;
  for (const SideBySide::Part& part : buffer.parts) {
    const int64_t next = at + part.width;
    const bool is_inside = at >= begin && next <= end;
    const bool is_outside = next <= begin || at >= end;
    if (!is_inside && !is_outside) return std::nullopt;
    if (is_inside && part.width > 0) found.push_back(part);
    at = next;
  }
  if (found.empty() || end > width) return std::nullopt;
  return found;
}

}  // namespace fxopt
