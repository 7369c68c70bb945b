#pragma once

#include <cstdint>
#include <vector>

#include "core/hash.h"
#include "core/hash_table.h"

namespace fxopt {

// Things that may be one and the same, in groups, each with a version: what is done to a member of a group of several
// may be done to any of them, so that it gives all of them another name. What never joined another takes no memory. Near
// O(1) for each call.
class VersionedGroups {
 public:
  void join(uint32_t a, uint32_t b);
  // Something was done to `member`; `by` names what.
  void change(uint32_t member, const Hash128& by);
  // Zero: nothing was ever done to one of several.
  Hash128 version(uint32_t member) {
    if (members_.empty()) return Hash128();
    const auto found = members_.find(member);
    return found == members_.end() ? Hash128() : groups_[root(found->second)].version;
  }

 private:
  struct Group {
    uint32_t parent = 0;
    uint32_t size = 1;
    Hash128 version;
  };

  uint32_t root(uint32_t group);
  uint32_t group_of(uint32_t member);

  HashMap<uint32_t, uint32_t> members_;
  std::vector<Group> groups_;
};

}  // namespace fxopt
