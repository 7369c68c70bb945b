#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/hash.h"
#include "ir/values/sym_int.h"

namespace fxopt {

// Groups of things that may be the same thing. A change of one may be a change of any other member
// of its group, so it gives all others a new name. A thing that never joined another takes no
// memory. Nearly O(1) per call.
class VersionedGroups {
 public:
  // Records that two things may be the same. Changes neither.
  void join(uint32_t a, uint32_t b);
  // Records a change of `member`, named `by`. The caller knows the new state of `member` itself.
  void change(uint32_t member, const Hash128& by);
  // Returns a name for the changes of possible aliases since the last own change of `member`, in
  // their order. Zero: none. Earlier changes do not count: in one of two graphs, a dead value may
  // have joined the group earlier.
  Hash128 changed_by_others(uint32_t member);
  // mark() adds a name that holds for the whole group. marks() returns one name for all such names.
  // Zero: none.
  void mark(uint32_t member, const Hash128& name);
  Hash128 marks(uint32_t member);
  // Returns a number common to all members of the group, valid until the next join. 0: never
  // joined.
  uint32_t group_of(uint32_t member);

 private:
  // The changes as the coefficients of a polynomial, with the latest as the constant term. The
  // changes since an earlier version are the remainder after removing that version.
  struct Version {
    SymInt changes;
    size_t count = 0;
    friend bool operator==(const Version&, const Version&) = default;
  };
  struct Member {
    uint32_t group = 0;
    Version known;  // the version up to which its state is known
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
  std::vector<SymInt> powers_;  // powers of the polynomials' variable
};

}  // namespace fxopt
