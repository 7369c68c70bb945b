#include "ir/check/equivalence/groups.h"

#include <algorithm>
#include <utility>

#include "ir/check/equivalence/keys.h"

namespace fxopt {

uint32_t VersionedGroups::root(uint32_t group) {
  while (groups_[group].parent != group) {
    groups_[group].parent = groups_[groups_[group].parent].parent;
    group = groups_[group].parent;
  }
  return group;
}

uint32_t VersionedGroups::group_of(uint32_t member) {
  const auto [found, is_new] = members_.emplace(member, static_cast<uint32_t>(groups_.size()));
  if (is_new) {
    Group group;
    group.parent = found->second;
    groups_.push_back(group);
  }
  return root(found->second);
}

void VersionedGroups::join(uint32_t a, uint32_t b) {
  if (a == b) return;
  a = group_of(a);
  b = group_of(b);
  if (a == b) return;
  if (groups_[a].size < groups_[b].size) std::swap(a, b);
  const Hash128 one = groups_[a].version;
  const Hash128 other = groups_[b].version;
  groups_[b].parent = a;
  groups_[a].size += groups_[b].size;
  if (other == Hash128()) return;
  // Whichever is the larger, the name is the same.
  const auto [first, second] = std::minmax(one, other);
  groups_[a].version =
      one == Hash128() ? other : make_key(KeyKind::kMayWrite, {first.high, first.low, second.high, second.low});
}

void VersionedGroups::change(uint32_t member, const Hash128& by) {
  const auto found = members_.find(member);
  if (found == members_.end()) return;
  Group& group = groups_[root(found->second)];
  group.version =
      make_key(KeyKind::kMayWrite, {group.version.high, group.version.low, by.high, by.low});
}

}  // namespace fxopt
