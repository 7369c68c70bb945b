#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/hash.h"
#include "ir/values/sym_int.h"

namespace fxopt {

// Things that may be one and the same, in groups: what is done to one may be done to any other of its group, so that it
// gives all others another name. What never joined another takes no memory. Near O(1) for each call.
class VersionedGroups {
 public:
  // That two may be one changes neither.
  void join(uint32_t a, uint32_t b);
  // Something was done to `member`; `by` names what. Of the member itself the caller knows it.
  void change(uint32_t member, const Hash128& by);
  // What was done to others that may be this one after its own last change, in its order; zero: nothing. What was done
  // before is not part of it: something that nobody reads may have joined earlier, in one of two graphs.
  Hash128 changed_by_others(uint32_t member);
  // Something that holds of all of the group; and all of that. Zero: nothing.
  void mark(uint32_t member, const Hash128& name);
  Hash128 marks(uint32_t member);
  // A number that those share which may be one, good until the next join; 0: it never joined another.
  uint32_t group_of(uint32_t member);

 private:
  // The changes as a polynomial, the last its constant term: those since another version are what is left without it.
  struct Version {
    SymInt changes;
    size_t count = 0;
    friend bool operator==(const Version&, const Version&) = default;
  };
  struct Member {
    uint32_t group = 0;
    Version known;  // the one up to which nothing is unsure
  };
  struct Group {
    uint32_t parent = 0;
    uint32_t size = 1;
    Version version;
    Hash128 marks;
  };

  uint32_t root(uint32_t group);
  static void add_mark(Group& group, const Hash128& name);
  Member& add(uint32_t member);

  Member* find(uint32_t member) {
    return member < places_.size() && places_[member] != 0 ? &members_[places_[member] - 1] : nullptr;
  }

  std::vector<uint32_t>
      places_;  // by member: 1 + its place among members_; 0, or beyond the end: it never joined another
  std::vector<Member> members_;
  std::vector<Group> groups_;
  std::vector<SymInt> powers_;  // of what the polynomials are in
};

}  // namespace fxopt
