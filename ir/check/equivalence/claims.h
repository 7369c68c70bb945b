#pragma once

#include <cstdint>
#include <string>

#include "ir/graph/types.h"
#include "ir/values/geometry.h"

// What a pass that changes expressions says of them, and who checks it.
//
// A graph run on names does not know that two different expressions are equal. A pass that puts one in place of another
// claims so: the value of this node follows from that law. In the graph before and in the graph after, wherever a node of
// that uid is, the law's checker looks at the state of the run there, and where its conditions hold gives the value the
// name that the law makes of it. Both sides of an equality then have one name; where a condition does not hold, the value
// keeps its own, and the graphs differ. A checker knows nothing of passes, and a law is nothing that a pass could bring.

namespace fxopt {

// How much of the result may change.
enum class Numerics : uint8_t {
  kExact,               // not a bit
  kReordersReductions,  // sums may be added up in another order
  kChangesNumerics,     // more than that
};
template <>
struct EnumNames<Numerics> {
  static constexpr EnumName<Numerics> kAll[] = {{Numerics::kExact, "exact"},
                                                {Numerics::kReordersReductions, "reorders-reductions"},
                                                {Numerics::kChangesNumerics, "changes-numerics"}};
};

enum class Law : uint8_t {
  // What is cut from tensors put side by side, by `cat` along dimension 0 or by `copy_` into parts of a buffer, is the
  // tensor that was put there.
  kPart,
  // An all-gather of tensors put side by side is one of each; what is cut from every rank's part of the result, and put
  // together, is what an all-gather of the one gives.
  kBucket,
  // The same of a reduction: an all-reduce, or a reduce-scatter of tensors put side by side in rows, one for each rank. The
  // order of the sums may be another: a ring's hangs on where an element stands.
  kBucketedReduction,
  // A gather over one group, of what a gather over another gave, is one over both, in the order of ranks that they make.
  kGathers,
  // What a rank gathered holds at its own place what it gave; so does a cat of all parts of it along another dimension, of which
  // a copy is meant.
  kOwnShard,
  // The sum of two reductions is the reduction of the sum. Sums are added up in another order.
  kAddedReductions,
};
template <>
struct EnumNames<Law> {
  static constexpr EnumName<Law> kAll[] = {
      {Law::kPart, "part"},       {Law::kBucket, "bucket"},      {Law::kBucketedReduction, "bucketed-reduction"},
      {Law::kGathers, "gathers"}, {Law::kOwnShard, "own-shard"}, {Law::kAddedReductions, "added-reductions"}};
};
Numerics numerics_of(Law law);

struct Claim {
  std::string graph;
  uint64_t uid = 0;  // of the node whose value follows from the law
  Law law = Law::kPart;
};

// A claim that its law does not bear out.
struct RefusedClaim {
  NodeId node;
  Law law = Law::kPart;
  std::string why;
};

// Whether a tensor seen as `site` may be named by the one seen as `source`, whose elements fill exactly the bytes that
// `site` shows, row by row. What holds against it; empty where nothing does. O(rank).
std::string check_part(const Geometry& site, const Geometry& source);

}  // namespace fxopt
