#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/hash.h"
#include "ir/values/sym_int.h"

namespace fxopt {

// Groups of items that may be the same item. An item is a tensor object or a storage. A change of
// one member may be a change of any other member of the group. The prover therefore gives all other
// members a new hash. An item that never joined another item takes no memory. Each call takes
// nearly O(1).
class VersionedGroups {
 public:
  // Records that two items may be the same. Changes neither item.
  void join(uint32_t a, uint32_t b);
  // Records a change of `member`. `by` is a hash that identifies the change. The state of `member`
  // itself then counts as known.
  void change(uint32_t member, const Hash128& by);
  // Returns a hash of the sequence of changes of possible aliases since `member` was last changed
  // by change(). Returns zero if no such change exists. Earlier changes are ignored, because they
  // may differ in two equal graphs. In one of these graphs, a dead value may have joined the group
  // earlier. The group then records changes that the other graph does not record.
  Hash128 changed_by_others(uint32_t member);
  // mark() adds a hash that applies to the whole group. marks() combines all hashes that mark()
  // added into one hash. It returns zero if none was added.
  void mark(uint32_t member, const Hash128& name);
  Hash128 marks(uint32_t member);
  // Returns a number that all members of the group share. The number is valid until the next join.
  // Returns 0 if the member never joined another item.
  uint32_t group_of(uint32_t member);

 private:
  // The changes of a group are the coefficients of a polynomial in one variable. The latest change
  // is the constant term. To compute the changes since an earlier version, multiply the earlier
  // polynomial by the variable once for each later change, and subtract the product from the
  // current polynomial.
  struct Version {
    SymInt changes;
    size_t count = 0;
    friend bool operator==(const Version&, const Version&) = default;
  };
  struct Member {
    uint32_t group = 0;
    Version known;  // the group's version at which the member's state was last known
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

  // By member: 1 + the member's place in members_. A member that never joined another item has the
  // entry 0 or no entry.
  std::vector<uint32_t> places_;
  std::vector<Member> members_;
  std::vector<Group> groups_;
  std::vector<SymInt> powers_;  // powers of the polynomials' variable
};

}  // namespace fxopt
