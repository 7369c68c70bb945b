#pragma once

#include <cstdint>

#include "ir/graph/types.h"

namespace fxopt {

// Whether the tag asks for the value to be recomputed rather than kept.
constexpr bool wants_recompute(Tag tag) { return tag == Tag::kMustRecompute || tag == Tag::kPreferRecompute; }

// The tag of a value that replaces two values, and the rule of the ordered list that decided.
struct MergedTag {
  Tag tag = Tag::kNone;
  TagRule rule = TagRule::kNone;  // kNone: both tags are equal
};

// Merges two tags by the rules of tag_rules.h. MUST_RECOMPUTE wins over everything, MUST_SAVE over
// preferences. The offload tags count as the save tags they imply, and win over these, since they
// keep the value as well. PREFER_RECOMPUTE wins over PREFER_SAVE, any tag over none. Commutative
// and associative.
MergedTag merge_tags(Tag a, Tag b);

}  // namespace fxopt
