#pragma once

#include <cstdint>

#include "ir/graph/types.h"

namespace fxopt {

// Whether the tag requires or prefers that the value is recomputed.
constexpr bool wants_recompute(Tag tag) { return tag == Tag::kMustRecompute || tag == Tag::kPreferRecompute; }

// Returns the tag that remains if two nodes with these tags are merged and both tags have the same
// source (see Replacer::merge()). This is the tag that comes first in this list:
//
//   MUST_RECOMPUTE, MUST_OFFLOAD, MUST_SAVE, PREFER_RECOMPUTE, PREFER_OFFLOAD, PREFER_SAVE, no tag
//
// Each offload tag comes right before the save tag that it implies, because offload also keeps the
// value. The order of the arguments does not matter.
Tag stronger_tag(Tag a, Tag b);

}  // namespace fxopt
