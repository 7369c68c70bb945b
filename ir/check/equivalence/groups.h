#pragma once

#include <cstdint>
#include <vector>

#include "core/hash.h"

namespace fxopt {

// Things that may be one and the same, in groups, each with a version: what is done to a member of a group of several
// may be done to any of them, so that it gives all of them another name. Near O(1) for each call.
class VersionedGroups {
 public:
  void add() { parents_.push_back(static_cast<uint32_t>(parents_.size())), versions_.emplace_back(), sizes_.push_back(1); }

  void join(uint32_t a, uint32_t b);
  // Something was done to `member`; `by` names what.
  void change(uint32_t member, const Hash128& by);
  // Zero: nothing was ever done to one of several.
  const Hash128& version(uint32_t member) { return versions_[root(member)]; }

 private:
  uint32_t root(uint32_t member);

  std::vector<uint32_t> parents_, sizes_;
  std::vector<Hash128> versions_;
};

}  // namespace fxopt
