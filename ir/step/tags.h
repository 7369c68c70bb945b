#pragma once

#include <cstdint>

#include "ir/graph/types.h"

namespace fxopt {

// Whether the tag requires or prefers that the value is recomputed.
constexpr bool wants_recompute(Tag tag) { return tag == Tag::kMustRecompute || tag == Tag::kPreferRecompute; }

// The tag of a value that replaces two values, and the rule of tag_rules.h that decided.
struct MergedTag {
  Tag tag = Tag::kNone;
  TagRule rule = TagRule::kNone;  // kNone if both tags are equal
};

// Merges two tags by the rules of tag_rules.h:
// - MUST_RECOMPUTE wins over all other tags.
// - MUST_SAVE wins over preferences.
// - An offload tag is treated as the save tag that it implies. The offload tag wins over that save
//   tag, because offload also keeps the value.
// - PREFER_RECOMPUTE wins over PREFER_SAVE.
// - Any tag wins over no tag.
// The merge is commutative and associative.
MergedTag merge_tags(Tag a, Tag b);

}  // namespace fxopt
