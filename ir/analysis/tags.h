#pragma once

#include <cstdint>

#include "ir/graph/types.h"

namespace fxopt {

constexpr uint8_t kRuleMerged = 12;

// The tag asks for the value to be computed again rather than kept.
constexpr bool wants_recompute(Tag tag) { return tag == Tag::kMustRecompute || tag == Tag::kPreferRecompute; }

// The tag of a value that stands for two values, and the rule of the ordered list that decided.
struct MergedTag {
  Tag tag = Tag::kNone;
  uint8_t rule = 0;  // 0: both are the same
};

// Who wins, by the ordered list of tag rules: MUST_RECOMPUTE over everything (7), MUST_SAVE over preferences (10), the
// offload tags as the save tags they imply (14) and, since they keep the value too, over these; PREFER_RECOMPUTE over
// PREFER_SAVE, as rule 8 has it by default; any tag over none (12). Commutative and associative.
MergedTag merge_tags(Tag a, Tag b);

}  // namespace fxopt
