#pragma once

#include <cstdint>
#include <string>

#include "ir/graph/types.h"
#include "ir/values/geometry.h"

// Claims are equalities that a pass asserts. Rewrite rules check them.
//
// Symbolic execution of a graph cannot detect that two different expressions are equal. A pass that
// replaces one expression by another therefore makes a claim. The claim contains the uid of a node,
// and the rewrite rule that makes the two expressions equal. The graph before the pass is called
// the input graph, and the graph after the pass is called the output graph. In both graphs, the
// claim applies to every node that has the uid in the claim.
//
// At each of these nodes, the prover checks the conditions of the rewrite rule. The check inspects
// the state of the symbolic execution. If the rule's conditions hold, the value gets the value
// number that the rule constructs. A value number is a 128-bit hash of the expression that computes
// a value. Both sides of the equality then have the same value number. If a condition does not
// hold, the value keeps its own value number, and the graphs differ. The check does not depend on
// any pass, and a pass cannot add a rule.

namespace fxopt {

// How much a rewrite may change a result.
enum class Numerics : uint8_t {
  kExact,               // the result is bitwise equal
  kReordersReductions,  // only the order in which terms of sums are added may change
  kChangesNumerics,     // any numerical difference is allowed, for example a lower precision
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
  // The same equality as kBucket, but for a reduction. The reduction is an all-reduce or a
  // reduce-scatter. The operand of a reduce-scatter has one row for each rank of the group, in the
  // group's order. The row of a rank contains a part of each concatenated tensor: the elements
  // whose sums this rank receives. The order of sums may change, because in a ring the order
  // depends on an element's position.
  kBucketedReduction,
  // Two all-gathers in sequence are equal to one all-gather over all ranks whose data is in the
  // final result. The second all-gather runs over another group than the first all-gather. Example
  // for rank 0 of the mesh [[0, 1, 2], [3, 4, 5]]:
  //
  //   all_gather(all_gather(x, {0, 3}), {0, 1, 2})  ==  all_gather(x, {0, 3, 1, 4, 2, 5})
  //
  // The group of the single all-gather lists the ranks in the order of their data in the final
  // result (ir/alias/rank_order.h).
  kGathers,
  // In the result of an all-gather, the part of this rank is equal to this rank's input. The rule
  // also applies if a `cat` joins the parts of all ranks along dimension 1 or later. This rank's
  // part is then a slice of the `cat` result. A row-major copy of this slice is equal to a
  // row-major copy of the input:
  //
  //   joined = cat([part of rank 0, part of rank 1, ...], dim=1)
  //   joined[:, columns of this rank].clone()  ==  input.clone()
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
  uint64_t uid = 0;  // uid of the node whose value number the rule constructs
  RewriteRule rule = RewriteRule::kPart;
};

// A claim that does not hold, because a condition of its rewrite rule is not met.
struct RefusedClaim {
  NodeId node;
  RewriteRule rule = RewriteRule::kPart;
  std::string why;  // the condition that is not met
};

// Checks whether a tensor with geometry `site` may get the value number of a tensor with geometry
// `source`. The prover then treats both tensors as equal. The caller must ensure that the elements
// of `source` were copied in row-major order, and that they fill exactly the bytes that `site`
// covers. Returns an empty string if both geometries have the same dtype, device, sizes and
// strides, and otherwise the property that differs. O(rank).
std::string check_part(const Geometry& site, const Geometry& source);

}  // namespace fxopt
