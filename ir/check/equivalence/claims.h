#pragma once

#include <cstdint>
#include <string>

#include "ir/graph/types.h"
#include "ir/values/geometry.h"

// Claims: equalities that a pass asserts, and the rewrite rules that check them.
//
// Symbolic execution of a graph does not know that two different expressions are equal. A pass that
// replaces one expression by another claims that the value of a node follows from a rewrite rule.
// The claim applies to every node of that uid, in the input graph and in the output graph. The
// checker of the rule inspects the state of the execution at that node. If the rule's conditions
// hold, the value gets the name that the rule constructs, so both sides of the equality have one
// name. If a condition does not hold, the value keeps its own name, and the graphs differ. A
// checker knows nothing about passes, and a pass cannot add a rule.

namespace fxopt {

// How much of the result may change.
enum class Numerics : uint8_t {
  kExact,               // bitwise equal
  kReordersReductions,  // sums may be added in another order
  kChangesNumerics,     // any other change
};
template <>
struct EnumNames<Numerics> {
  static constexpr EnumName<Numerics> kAll[] = {{Numerics::kExact, "exact"},
                                                {Numerics::kReordersReductions, "reorders-reductions"},
                                                {Numerics::kChangesNumerics, "changes-numerics"}};
};

enum class RewriteRule : uint8_t {
  // A slice of concatenated tensors is the tensor that was placed there, by `cat` along dimension 0
  // or by `copy_` into parts of a buffer.
  kPart,
  // An all-gather of concatenated tensors is one all-gather of each. Slicing a member out of every
  // rank's part of the result, and joining the slices, gives that member's own all-gather.
  kBucket,
  // The same for a reduction: an all-reduce, or a reduce-scatter of tensors concatenated in rows,
  // one row for each rank. The order of sums may change: in a ring it depends on an element's
  // position.
  kBucketedReduction,
  // A gather over one group of the result of a gather over another is one gather over both groups,
  // in the resulting order of ranks.
  kGathers,
  // A gathered tensor holds the rank's own input at the rank's own place. The same is true after a
  // cat of all its parts along another dimension. There the claim is about a copy of the own part.
  kOwnShard,
  // The sum of two reductions is the reduction of the sum. The order of additions changes.
  kAddedReductions,
};
template <>
struct EnumNames<RewriteRule> {
  static constexpr EnumName<RewriteRule> kAll[] = {{RewriteRule::kPart, "part"},
                                                   {RewriteRule::kBucket, "bucket"},
                                                   {RewriteRule::kBucketedReduction, "bucketed-reduction"},
                                                   {RewriteRule::kGathers, "gathers"},
                                                   {RewriteRule::kOwnShard, "own-shard"},
                                                   {RewriteRule::kAddedReductions, "added-reductions"}};
};
Numerics numerics_of(RewriteRule law);

struct Claim {
  std::string graph;
  uint64_t uid = 0;  // the node whose value follows from the rule
  RewriteRule law = RewriteRule::kPart;
};

// A claim whose rule does not hold.
struct RefusedClaim {
  NodeId node;
  RewriteRule law = RewriteRule::kPart;
  std::string why;
};

// Checks whether a tensor seen as `site` may take the name of the one seen as `source`, whose
// elements fill exactly the bytes that `site` shows, in row-major order. Returns the reason against
// it, or an empty string. O(rank).
std::string check_part(const Geometry& site, const Geometry& source);

}  // namespace fxopt
