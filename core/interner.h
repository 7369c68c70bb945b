#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "core/hash.h"
#include "core/hash_table.h"
#include "core/id.h"

namespace fxopt {

struct StringTag;
using StringId = Id<StringTag>;

// Stores each string once. Ids are dense and follow the order of first use. Id 0 is the empty
// string. Views stay valid for the interner's lifetime. In a copy of the interner, each string
// keeps its id. Assignment is deleted, because the index refers to the interner's own strings.
class Interner {
 public:
  Interner() : index_(0, Hash{&strings_}, Equal{&strings_}) { intern(""); }
  Interner(const Interner& other) : strings_(other.strings_), index_(other.size(), Hash{&strings_}, Equal{&strings_}) {
    for (size_t i = 0; i < strings_.size(); ++i) index_.insert(StringId(i));
  }
  Interner& operator=(const Interner&) = delete;

  // Returns the id of `text`, and stores `text` if it is new. O(length) expected.
  StringId intern(std::string_view text) {
    const size_t hash = hash_bytes(text);
    const Index::const_iterator found = index_.find(text, hash);
    if (found != index_.end()) return *found;
    const StringId id(strings_.size());
    strings_.emplace_back(text);
    index_.insert(id);
    return id;
  }

  // Returns the id of `text`, or an invalid id if `text` is not stored.
  StringId find(std::string_view text) const {
    const Index::const_iterator found = index_.find(text, hash_bytes(text));
    return found == index_.end() ? StringId() : *found;
  }

  std::string_view operator[](StringId id) const { return strings_[id.index()]; }
  size_t size() const { return strings_.size(); }

 private:
  struct Hash {
    const std::deque<std::string>* strings;
    size_t operator()(StringId id) const { return hash_bytes((*strings)[id.index()]); }
    size_t operator()(std::string_view text) const { return hash_bytes(text); }
  };
  struct Equal {
    using is_transparent = void;
    const std::deque<std::string>* strings;
    bool operator()(StringId a, StringId b) const { return a == b; }
    bool operator()(StringId a, std::string_view b) const { return (*strings)[a.index()] == b; }
    bool operator()(std::string_view a, StringId b) const { return (*strings)[b.index()] == a; }
  };
  using Index = HashSet<StringId, Hash, Equal>;  // a look-up reads at most one string

  std::deque<std::string> strings_;  // a deque never moves its elements
  Index index_;                      // looked up, never iterated
};

}  // namespace fxopt
