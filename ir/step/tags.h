#pragma once

#include <cstdint>

#include "ir/graph/types.h"

namespace fxopt {

// The tag asks for the value to be computed again rather than kept.
constexpr bool wants_recompute(Tag tag) { return tag == Tag::kMustRecompute || tag == Tag::kPreferRecompute; }

// The tag of a value that stands for two values, and the rule of the ordered list that decided.
struct MergedTag {
  Tag tag = Tag::kNone;
  TagRule rule = TagRule::kNone;  // kNone: both are the same
};

// Who wins, by the rules of tag_rules.h: MUST_RECOMPUTE over everything, MUST_SAVE over preferences, the offload tags
// as the save tags they imply and, since they keep the value too, over these; PREFER_RECOMPUTE over PREFER_SAVE; any
// tag over none. Commutative and associative.
MergedTag merge_tags(Tag a, Tag b);

}  // namespace fxopt
