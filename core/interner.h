#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/id.h"

namespace fxopt {

struct StringTag;
using StringId = Id<StringTag>;

// Strings kept once each. Ids are dense, in order of first use; id 0 is the empty string. Views stay valid for the
// interner's life. Not copyable: the index holds views into its own strings.
class Interner {
 public:
  Interner() { intern(""); }
  Interner(const Interner&) = delete;
  Interner& operator=(const Interner&) = delete;
  Interner(Interner&&) = default;
  Interner& operator=(Interner&&) = default;

  // O(length) expected.
  StringId intern(std::string_view text) {
    const std::unordered_map<std::string_view, StringId>::const_iterator found = index_.find(text);
    if (found != index_.end()) return found->second;
    const StringId id(strings_.size());
    strings_.emplace_back(text);
    index_.emplace(strings_.back(), id);
    return id;
  }

  // The id of a string already interned; invalid when it is not.
  StringId find(std::string_view text) const {
    const std::unordered_map<std::string_view, StringId>::const_iterator found = index_.find(text);
    return found == index_.end() ? StringId() : found->second;
  }

  std::string_view operator[](StringId id) const { return strings_[id.index()]; }
  size_t size() const { return strings_.size(); }

 private:
  std::deque<std::string> strings_;  // a deque never moves its elements
  std::unordered_map<std::string_view, StringId> index_;
};

}  // namespace fxopt
