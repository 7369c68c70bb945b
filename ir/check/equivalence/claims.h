#pragma once

#include <cstdint>
#include <string>

#include "ir/graph/types.h"
#include "ir/values/geometry.h"

// Claims are equalities that a pass asserts. Rewrite rules check them.
//
// Symbolic execution of a graph cannot detect that two different expressions are equal. A pass that
// replaces one expression by another therefore makes a claim. The claim states that the value of a
// node follows from a rewrite rule. The claim applies to every node with the claim's uid, in the
// input graph and in the output graph.
//
// The checker of the rule inspects the state of the execution at that node. If the rule's
// conditions hold, the value gets the name that the rule constructs. Both sides of the equality
// then have the same name. If a condition does not hold, the value keeps its own name, and the
// graphs differ. A checker does not depend on any pass, and a pass cannot add a rule.

namespace fxopt {

// How much a rewrite may change a result.
enum class Numerics : uint8_t {
  kExact,               // the result is bitwise equal
  kReordersReductions,  // terms of sums may be added in another order
  kChangesNumerics,     // the result may change in another way
};
template <>
struct EnumNames<Numerics> {
  static constexpr EnumName<Numerics> kAll[] = {{Numerics::kExact, "exact"},
                                                {Numerics::kReordersReductions, "reorders-reductions"},
                                                {Numerics::kChangesNumerics, "changes-numerics"}};
};

enum class RewriteRule : uint8_t {
  // A slice of concatenated tensors is equal to the tensor at the place of the slice. The tensor
  // was placed there by `cat` along dimension 0, or by `copy_` into a part of a buffer.
  kPart,
  // An all-gather of concatenated tensors is equal to one all-gather for each tensor. To get the
  // all-gather of one tensor, slice that tensor out of every rank's part of the result, and join
  // the slices.
  kBucket,
  // The same equality as kBucket, but for a reduction. The reduction is an all-reduce, or a
  // reduce-scatter of tensors that are concatenated in rows, with one row for each rank. The order
  // of sums may change, because in a ring the order depends on an element's position.
  kBucketedReduction,
  // If the operand of a gather over one group was gathered over another group, both gathers are
  // equal to one gather over both groups. The ranks of this one gather are in the order that
  // results from the two gathers.
  kGathers,
  // A gathered tensor contains the rank's own input at the rank's own place. The rule also covers a
  // `cat` of all parts of the gathered tensor along another dimension. After that `cat`, the claim
  // is about a copy of the rank's own part.
  kOwnShard,
  // The sum of two reductions is equal to the reduction of the sum. The order of additions changes.
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
Numerics numerics_of(RewriteRule rule);

struct Claim {
  std::string graph;
  uint64_t uid = 0;  // uid of the node whose value follows from the rule
  RewriteRule rule = RewriteRule::kPart;
};

// A claim whose rewrite rule does not hold, with the reason.
struct RefusedClaim {
  NodeId node;
  RewriteRule rule = RewriteRule::kPart;
  std::string why;
};

// Checks whether a tensor with geometry `site` may take the name of a tensor with geometry
// `source`. The elements of the tensor with geometry `source` must fill exactly the bytes that
// `site` covers, in row-major order. Returns an empty string if the name may be taken, and
// otherwise the reason why it may not be taken. O(rank).
std::string check_part(const Geometry& site, const Geometry& source);

}  // namespace fxopt
