#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "core/check.h"

namespace fxopt {

// A 32-bit index into one dense table. Each table has its own Tag, so ids of different tables do
// not mix. A default-constructed id is invalid. Ids compare by their position in the table.
template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(size_t index) : value_(static_cast<uint32_t>(index)) {}

  constexpr uint32_t index() const { return value_; }
  constexpr bool is_valid() const { return value_ != kNone; }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  uint32_t value_ = kNone;
};

// A side table: one T for each id. Reading beyond the end returns the fill value. Writing beyond
// the end grows the table. O(1) amortised.
template <class IdType, class T>
class IdMap {
 public:
  IdMap() = default;
  explicit IdMap(size_t size, T fill = T()) : fill_(fill), items_(size, fill) {}

  typename std::vector<T>::const_reference operator[](IdType id) const { return get(id); }
  // Returns the same as the const operator[], and never grows the table. Call get() to read a table
  // that is not const, because `map[id]` would call the operator[] that grows the table.
  typename std::vector<T>::const_reference get(IdType id) const {
    return id.index() < items_.size() ? items_[id.index()] : fill_;
  }
  // Grows the table if `id` is beyond the end. The returned reference is valid until the table
  // grows. In `map[a] = map[b]`, the table may grow at `map[a]`, after `map[b]` has returned its
  // reference. Copy the value of `map[b]` into a variable first.
  typename std::vector<T>::reference operator[](IdType id) {
    if (id.index() >= items_.size()) {
      FXOPT_CHECK(id.is_valid(), "an invalid id is used to write into a side table");
      items_.resize(id.index() + 1, fill_);
    }
    return items_[id.index()];
  }
  size_t size() const { return items_.size(); }

 private:
  T fill_ = T();
  std::vector<T> items_;
};

}  // namespace fxopt

template <class Tag>
struct std::hash<fxopt::Id<Tag>> {
  size_t operator()(const fxopt::Id<Tag>& id) const noexcept { return id.index(); }
};
