#include "ir/step/tags.h"

#include <utility>

namespace fxopt {
namespace {

int strength(Tag tag) {
  switch (tag) {
    case Tag::kNone:
      return 0;
    case Tag::kPreferSave:
      return 1;
    case Tag::kPreferOffload:
      return 2;
    case Tag::kPreferRecompute:
      return 3;
    case Tag::kMustSave:
      return 4;
    case Tag::kMustOffload:
      return 5;
    case Tag::kMustRecompute:
      return 6;
  }
  return 0;
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
