#include "ir/check/equivalence/claims.h"

namespace fxopt {

Numerics numerics_of(RewriteRule rule) {
  switch (rule) {
    case RewriteRule::kPart:
    case RewriteRule::kBucket:
    case RewriteRule::kGathers:
    case RewriteRule::kOwnShard:
      return Numerics::kExact;
    case RewriteRule::kBucketedReduction:
    case RewriteRule::kAddedReductions:
      return Numerics::kReordersReductions;
  }
  return Numerics::kChangesNumerics;
}

std::string check_part(const Geometry& site, const Geometry& source) {
  if (site.dtype != source.dtype || site.rest != source.rest)
    return "the slice and the tensor copied there differ in dtype or device";
  if (site.sizes != source.sizes) return "the slice and the tensor copied there differ in sizes";
  // A user may copy the strides of the slice to its own result.
  Geometry moved = source;
  moved.offset = site.offset;
  if (!same_geometry(site, moved)) return "the slice and the tensor copied into it differ in strides";
  return "";
}

}  // namespace fxopt
