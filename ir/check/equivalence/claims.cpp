#include "ir/check/equivalence/claims.h"

namespace fxopt {

Numerics numerics_of(Law law) {
  switch (law) {
    case Law::kPart:
    case Law::kBucket:
    case Law::kGathers:
    case Law::kOwnShard:
      return Numerics::kExact;
    case Law::kBucketedReduction:
    case Law::kAddedReductions:
      return Numerics::kReordersReductions;
  }
  return Numerics::kChangesNumerics;
}

std::string check_part(const Geometry& site, const Geometry& source) {
  if (site.dtype != source.dtype || site.rest != source.rest) return "the part has another dtype or device";
  if (site.sizes != source.sizes) return "the part has other sizes than what was put there";
  // Whoever reads it may give its result these strides.
  Geometry moved = source;
  moved.offset = site.offset;
  if (!same_geometry(site, moved)) return "the part has other strides than what was put there";
  return "";
}

}  // namespace fxopt
