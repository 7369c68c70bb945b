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
  // Returns a hash of the changes of other members since the last change() of `member`, in order.
  // These members are possible aliases of `member`. Returns zero if no other member has changed
  // since then. Exception: after a join() of other members, the result may be nonzero without such
  // a change. Changes before the last change() of `member` are ignored, because two equal graphs
  // may record different earlier changes. For example, only one of the two graphs may contain a
  // dead value that joins the group. The group in this graph exists earlier, and records changes
  // that the group in the other graph does not record.
  Hash128 changed_by_others(uint32_t member);
  // mark() adds a hash that applies to the whole group. marks() combines all hashes that mark()
  // added into one hash. It returns zero if none was added.
  void mark(uint32_t member, const Hash128& name);
  Hash128 marks(uint32_t member);
  // Returns a number that all members of the group share. The number is valid until the next join.
  // Returns 0 if the member never joined another item.
  uint32_t group_of(uint32_t member);

 private:
  // The changes of a group, up to some point in time. Each change is represented by its hash, and
  // the sequence c1, c2, ..., cn of changes is represented by a polynomial in a variable x:
  //
  //   P(n) = c1 * x^(n-1) + c2 * x^(n-2) + ... + cn
  //
  // One subtraction removes the first m changes, so only the later changes remain:
  //
  //   P(n) - P(m) * x^(n-m) = c(m+1) * x^(n-m-1) + ... + cn
  //
  // join() joins two groups. If only one of the two groups has changes, the joined group keeps the
  // version of that group. Two groups with changes may have the polynomials P and Q, after n and k
  // changes. The joined group then gets a new version:
  //
  //   changes = hash(P, Q)   (a polynomial with a single term)
  //   count   = n + k
  //
  // The new count is larger than the number of terms. The new count is also larger than n and k, so
  // the exponent of x in a later subtraction is never negative.
  struct Version {
    SymInt changes;    // the polynomial P(n)
    size_t count = 0;  // the number n of changes
    friend bool operator==(const Version&, const Version&) = default;
  };
  struct Member {
    uint32_t group = 0;
    // Version of the group after the last change() of this member. Later changes by other members
    // may have changed the state of this member. If no later change exists when join() is called
    // with this member, join() sets `known` to the version of the joined group.
    Version known;
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
