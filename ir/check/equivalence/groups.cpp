#include "ir/check/equivalence/groups.h"

#include <algorithm>
#include <utility>

#include "ir/check/equivalence/keys.h"

namespace fxopt {
namespace {

const SymInt& next_change() {
  static const SymInt next = SymInt::symbol(hash_text("the next change"));
  return next;
}

}  // namespace

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
  members_.push_back({static_cast<uint32_t>(groups_.size()), Version()});
  places_[member] = static_cast<uint32_t>(members_.size());
  Group group;
  group.parent = members_.back().group;
  groups_.push_back(group);
  return members_.back();
}

Hash128 VersionedGroups::changed_by_others(uint32_t member) {
  const Member* found = find(member);
  if (found == nullptr) return Hash128();
  const Version& now = groups_[root(found->group)].version;
  if (now == found->known) return Hash128();
  const size_t count = now.count - found->known.count;
  if (powers_.empty()) powers_.emplace_back(1);
  while (powers_.size() <= count) powers_.push_back(powers_.back() * next_change());
  const Hash128 since = (now.changes - found->known.changes * powers_[count]).key();
  return make_key(KeyKind::kMayWrite, since, count);
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
  const Version one = groups_[top].version;
  const Version two = groups_[other].version;
  groups_[other].parent = top;
  add_mark(groups_[top], groups_[other].marks);
  groups_[top].size += groups_[other].size;
  if (one.count == 0) groups_[top].version = two;
  if (one.count != 0 && two.count != 0) {
    // The hash does not depend on which group is larger. No member knows the new version, so its
    // count is larger than both old counts.
    const Hash128 left = one.changes.key(), right = two.changes.key();
    const auto [first, second] = std::minmax(left, right);
    groups_[top].version = {SymInt::symbol(make_key(KeyKind::kMayWrite, first, second)), one.count + two.count};
  }
  if (knows_a) find(a)->known = groups_[top].version;
  if (knows_b) find(b)->known = groups_[top].version;
}

void VersionedGroups::add_mark(Group& group, const Hash128& name) {
  if (name == Hash128() || name == group.marks) return;
  const auto [first, second] = std::minmax(group.marks, name);
  group.marks = first == Hash128() ? second : make_key(KeyKind::kData, first, second);
}

void VersionedGroups::mark(uint32_t member, const Hash128& name) { add_mark(groups_[root(add(member).group)], name); }

Hash128 VersionedGroups::marks(uint32_t member) {
  const Member* found = find(member);
  return found == nullptr ? Hash128() : groups_[root(found->group)].marks;
}

void VersionedGroups::change(uint32_t member, const Hash128& by) {
  Member* found = find(member);
  if (found == nullptr) return;
  Version& version = groups_[root(found->group)].version;
  version = {version.changes * next_change() + SymInt::symbol(make_key(KeyKind::kMayWrite, by)), version.count + 1};
  found->known = version;
}

}  // namespace fxopt
