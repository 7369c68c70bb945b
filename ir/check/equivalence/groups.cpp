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

VersionedGroups::Member& VersionedGroups::add(uint32_t member) {
  if (Member* known = find(member); known != nullptr) return *known;
  if (member >= places_.size()) places_.resize(size_t{member} + 1);
  members_.push_back({static_cast<uint32_t>(groups_.size()), Hash128()});
  places_[member] = static_cast<uint32_t>(members_.size());
  Group group;
  group.parent = members_.back().group;
  groups_.push_back(group);
  return members_.back();
}

Hash128 VersionedGroups::changed_by_others(uint32_t member) {
  const Member* found = find(member);
  if (found == nullptr) return Hash128();
  const Hash128 version = groups_[root(found->group)].version;
  return version == found->known ? Hash128() : version;
}

uint32_t VersionedGroups::group_of(uint32_t member) {
  const Member* found = find(member);
  return found == nullptr ? 0 : root(found->group) + 1;
}

void VersionedGroups::join(uint32_t a, uint32_t b) {
  if (a == b) return;
  const bool knows_a = changed_by_others(a) == Hash128();
  const bool knows_b = changed_by_others(b) == Hash128();
  uint32_t top = root(add(a).group);
  uint32_t other = root(add(b).group);
  if (top == other) return;
  if (groups_[top].size < groups_[other].size) std::swap(top, other);
  const Hash128 one = groups_[top].version;
  const Hash128 two = groups_[other].version;
  groups_[other].parent = top;
  groups_[top].size += groups_[other].size;
  if (two != Hash128()) {
    // Whichever is the larger, the name is the same.
    const auto [first, second] = std::minmax(one, two);
    groups_[top].version =
        one == Hash128() ? two : make_key(KeyKind::kMayWrite, {first.high, first.low, second.high, second.low});
  }
  if (knows_a) find(a)->known = groups_[top].version;
  if (knows_b) find(b)->known = groups_[top].version;
}

void VersionedGroups::change(uint32_t member, const Hash128& by) {
  Member* found = find(member);
  if (found == nullptr) return;
  Group& group = groups_[root(found->group)];
  group.version = make_key(KeyKind::kMayWrite, {group.version.high, group.version.low, by.high, by.low});
  found->known = group.version;
}

}  // namespace fxopt
