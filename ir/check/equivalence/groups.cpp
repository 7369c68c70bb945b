#include "ir/check/equivalence/groups.h"

#include <utility>

#include "ir/check/equivalence/keys.h"

namespace fxopt {

uint32_t VersionedGroups::root(uint32_t member) {
  while (parents_[member] != member) {
    parents_[member] = parents_[parents_[member]];
    member = parents_[member];
  }
  return member;
}

void VersionedGroups::join(uint32_t a, uint32_t b) {
  a = root(a);
  b = root(b);
  if (a == b) return;
  if (sizes_[a] < sizes_[b]) std::swap(a, b);
  const Hash128 one = versions_[a];
  const Hash128 other = versions_[b];
  parents_[b] = a;
  sizes_[a] += sizes_[b];
  // Whichever is the larger, the name is the same.
  if (other != Hash128()) {
    const auto [first, second] = std::minmax(one, other);
    versions_[a] = one == Hash128() ? other : make_key(KeyKind::kMayWrite, {first.high, first.low, second.high, second.low});
  }
}

void VersionedGroups::change(uint32_t member, const Hash128& by) {
  const uint32_t top = root(member);
  if (sizes_[top] == 1) return;
  const Hash128 old = versions_[top];
  versions_[top] = make_key(KeyKind::kMayWrite, {old.high, old.low, by.high, by.low});
}

}  // namespace fxopt
