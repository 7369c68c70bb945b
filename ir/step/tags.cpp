#include "ir/step/tags.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace fxopt {
namespace {

// The tags from the weakest to the strongest. A tag of a newer schema is treated like no tag.
constexpr Tag kFromWeakest[] = {Tag::kNone,     Tag::kPreferSave,  Tag::kPreferOffload, Tag::kPreferRecompute,
                                Tag::kMustSave, Tag::kMustOffload, Tag::kMustRecompute};

std::ptrdiff_t strength(Tag tag) {
  const Tag* found = std::ranges::find(kFromWeakest, tag);
  return found == std::end(kFromWeakest) ? 0 : found - std::begin(kFromWeakest);
}

TagRule rule_for(Tag winner, Tag loser) {
  if (winner == loser) return TagRule::kNone;
  if (loser == Tag::kNone) return TagRule::kMerged;
  switch (winner) {
    case Tag::kMustRecompute:
      return TagRule::kMustRecompute;
    case Tag::kMustSave:
      return TagRule::kMustSave;
    case Tag::kPreferRecompute:
      return loser == Tag::kPreferOffload ? TagRule::kOffload : TagRule::kPreference;
    default:
      return TagRule::kOffload;
  }
}

}  // namespace

MergedTag merge_tags(Tag a, Tag b) {
  if (strength(a) < strength(b)) std::swap(a, b);
  return {a, rule_for(a, b)};
}

}  // namespace fxopt
