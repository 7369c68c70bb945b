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
          "Largest total, in bytes, of the all-reduces in one bucket; 0: do not bucket all-reduces. Sums may be "
          "reordered, as for reduce-scatter.");
    field("groups", self.groups,
          "primary: for each kind of collective, only the group with most gathers of parameters or reductions of "
          "gradients; all: every group.");
    field("max-span", self.max_span,
          "Largest distance, in nodes of the schedule, from the first member of a bucket to the last; 0: no limit.");
    field("max-growth", self.max_growth,
          "Largest growth of the graph's ideal peak, as a fraction of it. Buckets live at the peak are split until the "
          "limit holds. Negative: no limit. Not with compat=torch.");
    field("payload", self.payload,
          "Order of members in the buffer. graph: order of issue; parameters: order of the graph's parameters, so that "
          "sums do not depend on trace order. Members without a parameter come last.");
    field("form", self.form,
          "How a bucket is written. functional: one call on one buffer; out: the same, but an all-gather sends from "
          "this rank's place in its result, and no buffer is held while it runs; coalesced: one call on the list of "
          "tensors, without a buffer or copies.");
    field("modules", self.modules,
          "Comma-separated modules: only members of the same module share a bucket. layers.* is one module for each "
          "layer, norm+lm_head is one module. Collectives of other modules are not bucketed. Default: modules are "
          "ignored. Not with compat=torch.");
    field("compat", self.compat,
          "Which rules form buckets. fxopt: those of this pass; torch: those of bucket_fsdp_all_gather, "
          "_reduce_scatter and _all_reduce of PyTorch 2.15, which merge neighbours of one key that its recognisers "
          "take for FSDP's.");
  }
};

// Merges collectives into fewer, larger ones. Members of a bucket have one kind, group, reduction,
// dtype and phase, and need not be adjacent. Their inputs are concatenated, and the result is
// split.
//
//   %a = all_gather_into_tensor(%x, 2, "g")       %v = cat([view(%x, [n]), view(%y, [m])])
//   %w = wait_tensor(%a)                          %b = all_gather_into_tensor(%v, 2, "g")
//   %c = all_gather_into_tensor(%y, 2, "g")   =>  %u = view(wait_tensor(%b), [2, n + m])
//   %z = wait_tensor(%c)                          %p = split_with_sizes(%u, [n, m], 1)
//                                                 %w = view(clone(getitem(%p, 0)), sizes of %w)
//                                                 and so for %z
//
// Each collective joins the first bucket of its key that can take it. Two plans are made, and the
// one that saves more calls is used: one tries the four newest buckets, the other only the newest.
// A bucket's bytes are the sum over its members of the larger of input and output, and never exceed
// the cap. No member depends on another, directly or through another bucket: this is tested on the
// dependence relation in which each bucket of the plan is one node. Other nodes keep their order as
// far as the buckets allow (a heap by the old place).
//
// A collective is not bucketed if its group is not listed, its sizes are not known numbers, or its
// input is not row-major. Neither is one that is read before its wait, or that a control dependency
// or an event holds.
//
// form=out
//   %e = empty([2 * (n + m)])
//   %s = slice(%e, 0, own * (n + m), ...)
//   %i = copy_(%s, %v)
//   %b = all_gather_into_tensor_out(%i, 2, "g", out=%e)
// form=coalesced
//   %b = all_gather_into_tensor_coalesced([%x, %y], 2, "g")
//   %p = getitem(%b, 0)
//   %w = wait_tensor(%p), and so for %z
//
// With form=out the slice that is filled depends on the rank. Gathers are functional if the file
// does not give its rank. Reductions are always functional, as they have no result to send from. A
// coalesced bucket becomes functional if a member has a recompute tag that is not carried out yet.
// NCCL starts the members of a coalesced bucket together.
//
// Buckets raise the peak because inputs wait for the last input of their bucket, and results exist
// before they are read. While a device is above its limit, every bucket with such storages live
// there is split in two, in schedule order. If no bucket has any, the order that buckets need is
// the cause, and all buckets are split. This ends when each device's peak is within max-growth. The
// plan thus depends on the peak of the file's rank: if the ranks' graphs differ, `fxopt ranks`
// checks whether the results still fit together.
//
// Results of reductions share the bucket's memory. They are copied, as gathered results always are,
// if they are returned, written to, or viewed as wider elements. A collective is not bucketed if a
// consumer may see more of its result than the elements. New nodes run on the members' streams,
// which are part of the key. Nodes that waited for a member wait for the bucket.
//
// Counters: buckets, bucketed (members). A remark on every collective of these kinds that is not
// bucketed gives the obstacle to the last merge that was tried. Graph remarks: left-out
// (collectives are not bucketed), bucket-split (for max-growth). Warnings: may-differentiate;
// peak-grows (the ideal peak grows); tagged-members (recompute tags on members are not carried out
// yet); form (a bucket is functional although another form was asked for).
//
// Numerics: all-gathers are exact. Reduce-scatters and all-reduces may reorder sums: the order of a
// ring depends on an element's place in the buffer, and NCCL chooses the order by the payload's
// size.
//
// O((nodes + dependences) log nodes) for each round of splits; at most log(members) rounds.
Result<PassResult> bucket(Graph& graph, const BucketOptions& options, PassContext& context);

}  // namespace fxopt
