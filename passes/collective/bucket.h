#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "passes/pass/context.h"
#include "passes/pass/options.h"
#include "passes/pass/pass.h"

namespace fxopt {

enum class BucketGroups : uint8_t {
  kPrimary,
  kAll,
};
template <>
struct EnumNames<BucketGroups> {
  static constexpr EnumName<BucketGroups> kAll[] = {{BucketGroups::kPrimary, "primary"}, {BucketGroups::kAll, "all"}};
};

enum class BucketPayload : uint8_t {
  kGraph,
  kParameters,
};
template <>
struct EnumNames<BucketPayload> {
  static constexpr EnumName<BucketPayload> kAll[] = {{BucketPayload::kGraph, "graph"},
                                                     {BucketPayload::kParameters, "parameters"}};
};

enum class BucketForm : uint8_t {
  kFunctional,
  kOut,
  kCoalesced,
};
template <>
struct EnumNames<BucketForm> {
  static constexpr EnumName<BucketForm> kAll[] = {
      {BucketForm::kFunctional, "functional"}, {BucketForm::kOut, "out"}, {BucketForm::kCoalesced, "coalesced"}};
};

struct BucketOptions {
  Bytes all_gather = {int64_t{200} << 20};
  Bytes reduce_scatter = {0};
  Bytes all_reduce = {0};
  BucketGroups groups = BucketGroups::kPrimary;
  int64_t max_span = 1500;
  Share max_growth = {0.05};
  BucketPayload payload = BucketPayload::kGraph;
  BucketForm form = BucketForm::kFunctional;
  std::vector<std::string> modules;
  Compat compat = Compat::kFxopt;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("all-gather", self.all_gather,
          "Largest total output, in bytes, of the all-gathers in one bucket; 0: do not bucket all-gathers.");
    field("reduce-scatter", self.reduce_scatter,
          "Largest total input, in bytes, of the reduce-scatters in one bucket; 0: do not bucket reduce-scatters. Sums "
          "may be reordered, which needs --numerics reorders-reductions.");
    field("all-reduce", self.all_reduce,
          "Largest total input, in bytes, of the all-reduces in one bucket; 0: do not bucket all-reduces. Sums may be "
          "reordered, which needs --numerics reorders-reductions.");
    field("groups", self.groups,
          "Process groups whose collectives are bucketed. primary: for each kind of collective, only the group with "
          "the most gathers of parameters or reductions of gradients; all: every group.");
    field("max-span", self.max_span,
          "Largest distance, in nodes of the schedule, between the first and the last collective of a bucket; 0: no "
          "limit.");
    field("max-growth", self.max_growth,
          "Largest growth of the graph's ideal peak (live bytes), as a fraction of that peak. Buckets that are live at "
          "the peak are split until the growth is within this limit. Negative: no limit. Not with compat=torch.");
    field("payload", self.payload,
          "Order in which the tensors of a bucket are placed in the buffer. graph: order in which the graph issues "
          "their collectives; parameters: order of the graph's parameters, so that sums do not depend on trace order. "
          "Tensors without a parameter come last.");
    field("form", self.form,
          "How a bucket is written. functional: one call on one buffer; out: like functional, but the inputs of "
          "all-gathers are copied into this rank's slice of the result, so no separate input buffer is live during the "
          "call; coalesced: one call on the list of tensors, without a buffer or copies.");
    field("modules", self.modules,
          "Comma-separated modules: only collectives of the same module share a bucket. `layers.*` means one module "
          "for each layer, and `norm+lm_head` means one module. Collectives of other modules are not bucketed. "
          "Default: modules are ignored. Not with compat=torch.");
    field("compat", self.compat,
          "Which rules form buckets. fxopt: the rules of this pass; torch: the rules of PyTorch 2.15 "
          "(bucket_fsdp_all_gather, bucket_fsdp_reduce_scatter, bucket_fsdp_all_reduce). These rules merge "
          "neighbouring collectives of FSDP if "
          "their group, reduction and dtype are equal.");
  }
};

// Merges collectives into fewer, larger ones. The members of a bucket have the same kind, group,
// reduction, dtype and phase. They need not be adjacent. Their inputs are concatenated, and the
// result is split.
//
//   %a = all_gather_into_tensor(%x, 2, "g")       %v = cat([view(%x, [n]), view(%y, [m])])
//   %w = wait_tensor(%a)                          %b = all_gather_into_tensor(%v, 2, "g")
//   %c = all_gather_into_tensor(%y, 2, "g")   =>  %u = view(wait_tensor(%b), [2, n + m])
//   %z = wait_tensor(%c)                          %p = split_with_sizes(%u, [n, m], 1)
//                                                 %w = view(clone(getitem(%p, 0)), sizes of %w)
//                                                 %z = view(clone(getitem(%p, 1)), sizes of %z)
//
// The key of a collective is the set of properties that all members of a bucket share. Each
// collective joins the first bucket of its key that can take it. The pass makes two plans, and uses
// the plan that needs fewer calls. The first plan keeps the four newest buckets of each key open.
// The second plan keeps only the newest bucket of each key open.
//
// The size of a bucket is the sum of the sizes of its members. The size of a member is its input
// bytes or its output bytes, whichever is larger. The option `all-gather` limits the size of a
// bucket of all-gathers. The options `reduce-scatter` and `all-reduce` limit the buckets of these
// kinds. A collective joins a bucket only if the bucket stays within its limit.
//
// With compat=fxopt, no member of a bucket depends on another member, directly or through another
// bucket. The pass tests this on the dependence graph, where each planned bucket counts as one
// node. All other nodes keep their order as far as the buckets allow.
//
// A collective is not bucketed if
// - its group is not in the file's table of groups,
// - its sizes are not known numbers,
// - its input is not row-major,
// - a node reads its result before the wait, or
// - it or its wait has a control dependency or an event.
//
// The option `form` changes how the bucket of the example is written:
//
// form=out
//   %e = empty([2 * (n + m)])
//   %s = slice(%e, 0, own * (n + m), ...)
//   %i = copy_(%s, %v)
//   %b = all_gather_into_tensor_out(%i, 2, "g", out=%e)
//
// form=coalesced
//   %b = all_gather_into_tensor_coalesced([%x, %y], 2, "g")
//   %p = getitem(%b, 0)
//   %w = wait_tensor(%p)
//   %q = getitem(%b, 1)
//   %z = wait_tensor(%q)
//
// With form=out, each rank fills the slice at its own place in the group (`own`). A bucket of
// gathers is therefore written as form=functional if the file does not give the rank. A bucket of
// reductions is always written as form=functional, because a reduction cannot send from its result
// buffer. A coalesced bucket is written as form=functional if a member has a recompute tag that is
// not carried out yet.
//
// Buckets raise the peak for two reasons: inputs wait for the last input of their bucket, and
// results exist before they are read. The option `max-growth` limits the peak of each device. If a
// peak is above its limit, the pass finds the nodes at which the live bytes are above the limit.
// Then the pass splits each bucket with an input or a storage that is live at such a node. A split
// makes two halves, in schedule order. A half with only one member is not bucketed. If no bucket
// has such an input or storage, the peak grows because of the new order of nodes, and all buckets
// are split. Splitting ends when the peak of each device is within its limit. Therefore, the plan
// depends on the peak of the file's rank. If the graphs of the ranks differ, `fxopt ranks` checks
// whether their results still fit together.
//
// Results of reductions share the memory of the bucket. A result of a reduction is copied if it is
// returned, written to, or viewed as wider elements. Results of gathers are always copied. A
// collective is not bucketed if a consumer may read the storage of the result beyond its elements.
// New nodes run on the streams of the members, and the streams are part of the key. Control
// dependencies on a member become control dependencies on the bucket.
//
// Counters: buckets, bucketed (members). Every all-gather, reduce-scatter and all-reduce that is
// not bucketed gets a remark. The remark names the obstacle to the last merge that was tried. Graph
// remarks: left-out (some collectives are not bucketed), bucket-split (buckets are split for
// max-growth).
//
// Warnings:
// - may-differentiate: autograd may differentiate the graph, so nothing is changed
// - peak-grows: the peak of live bytes grows
// - tagged-members: recompute tags on members are not carried out yet
// - form: a bucket is written as form=functional although another form was requested
//
// Errors: kUnsupportedGraph with compat=torch, if a member of a bucket depends on another member,
// directly or through another bucket. PyTorch's rules do not test all dependences, so they may form
// such a bucket.
//
// Numerics: bucketed all-gathers are exact. Bucketed reduce-scatters and all-reduces may reorder
// sums, for two reasons. In a ring, the order of a sum depends on the place of the element in the
// buffer. In addition, NCCL chooses the algorithm, and with it the order, by the size of the
// payload.
//
// Complexity: O((nodes + dependences) log nodes) for each round of splits. There are at most
// log(members) rounds.
Result<PassResult> bucket(Graph& graph, const BucketOptions& options, PassContext& context);

}  // namespace fxopt
