#include "ir/step/tags.h"

#include <algorithm>
#include <iterator>

namespace fxopt {
namespace {

// The tags from the weakest to the strongest. A tag of a newer schema is treated like no tag.
constexpr Tag kFromWeakest[] = {Tag::kNone,     Tag::kPreferSave,  Tag::kPreferOffload, Tag::kPreferRecompute,
                                Tag::kMustSave, Tag::kMustOffload, Tag::kMustRecompute};

std::ptrdiff_t strength(Tag tag) {
  const Tag* found = std::ranges::find(kFromWeakest, tag);
  return found == std::end(kFromWeakest) ? 0 : found - std::begin(kFromWeakest);
}

}  // namespace

Tag stronger_tag(Tag a, Tag b) { return strength(a) < strength(b) ? b : a; }

}  // namespace fxopt
