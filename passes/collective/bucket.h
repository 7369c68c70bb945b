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
  double max_growth = 0.05;
  BucketPayload payload = BucketPayload::kGraph;
  BucketForm form = BucketForm::kFunctional;
  std::vector<std::string> modules;
  Compat compat = Compat::kFxopt;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("all-gather", self.all_gather,
          "At most so many bytes come out of the all-gathers of one bucket; 0 leaves all-gathers alone.");
    field(
        "reduce-scatter", self.reduce_scatter,
        "At most so many bytes go into the reduce-scatters of one bucket; 0 leaves them alone. Sums may be added up in "
        "another order: needs --numerics reorders-reductions.");
    field("all-reduce", self.all_reduce,
          "At most so many bytes go through the all-reduces of one bucket; 0 leaves them alone. Sums as for "
          "reduce-scatter.");
    field("groups", self.groups,
          "primary: of each kind those of the group on which most gather parameters or reduce gradients; all: of every "
          "group.");
    field("max-span", self.max_span,
          "Members of a bucket stand at most so many nodes apart in the schedule; 0: any distance.");
    field("max-growth", self.max_growth,
          "The ideal peak of the graph grows by at most this part of it: buckets that are live at the peak are parted "
          "until it "
          "does; below 0: by any. Not with compat=torch.");
    field(
        "payload", self.payload,
        "How members lie in the buffer: graph: as they are issued; parameters: as the graph takes their parameters, so "
        "that sums do not hang on how the graph was traced. Others lie after those of parameters.");
    field("form", self.form,
          "What a bucket is: functional: one call on one buffer; out: so, but a gather sends from this rank's place in "
          "its "
          "result, and no buffer is held while it runs; coalesced: one call of all tensors, with no buffer and no "
          "copies.");
    field("modules", self.modules,
          "Only members of one of these modules share a bucket, comma-separated: layers.* is a module for each layer, "
          "norm+lm_head are one. Collectives of none of them stay. Without it modules do not matter. Not with "
          "compat=torch.");
    field("compat", self.compat,
          "Whose choice: fxopt, or torch (bucket_fsdp_all_gather, _reduce_scatter and _all_reduce of 2.15: neighbours "
          "of one key "
          "that its recognisers take for FSDP's).");
  }
};

// Makes one collective of several of one kind, group, reduction, dtype and phase, that need not stand next to each other:
// inputs are put side by side, results are cut out again.
//
//   %a = all_gather_into_tensor(%x, 2, "g")        %v = cat([view(%x, [n]), view(%y, [m])])
//   %w = wait_tensor(%a)                           %b = all_gather_into_tensor(%v, 2, "g")
//   %c = all_gather_into_tensor(%y, 2, "g")   =>   %p = split_with_sizes(view(wait_tensor(%b), [2, n + m]), [n, m], 1)
//   %z = wait_tensor(%c)                           %w = view(clone(getitem(%p, 0)), sizes of %w), and so for %z
//
// Each goes into the first bucket of its key that takes it, of the four that were begun last, or of the last alone: whichever
// saves more calls. A bucket's bytes are the sum over its members of the larger of input and output, and never above the cap.
// No member depends on another, directly or through another bucket: tested on the dependence relation with every bucket of the
// plan made one. Other nodes keep their order as far as the buckets let them (a heap by the old place). A collective whose
// group is not listed, whose sizes are not known numbers, whose input is not laid out row by row, that is read before its wait
// or held by a control dependency or an event, stays.
//
// form=out                                         form=coalesced
//   %e = empty([2 * (n + m)])                         %b = all_gather_into_tensor_coalesced([%x, %y], 2, "g")
//   %s = slice(%e, 0, own * (n + m), ...)             %p = getitem(%b, 0)
//   %i = copy_(%s, %v)                                %w = wait_tensor(%p), and so for %z
//   %b = all_gather_into_tensor_out(%i, 2, "g", out=%e)
//
// What `out` writes hangs on the rank: where the file does not say which one it is of, gathers are functional. Reductions are
// functional in it, as they have no result to send from. A coalesced bucket of which a member is tagged for recompute, which is
// still to be carried out, is functional, too. NCCL starts the members of a coalesced one together.
//
// What makes the peak grow are inputs that wait for the last one of their bucket, and results that are there before they are
// read. Every bucket that has such where a device takes more than it may is parted in two, in schedule order, and its parts
// again, until each device's peak is within max-growth; where none has, the order is what it takes, and all are parted. So the
// choice hangs on the peak of the file's rank: of ranks with unlike graphs `fxopt ranks` says whether they still fit together.
//
// Results of reductions share the bucket's memory, unless they are handed out, written to, or viewed as wider elements: then, as
// what was gathered is, they are copied. Where somebody may see more of a result than its elements, the collective stays. New
// nodes run on the members' streams, which are part of the key; what waited for a member waits for the bucket.
//
// Counters: buckets, bucketed (members). Remarks on every collective of these kinds that stays: alone, with what stood against
// the last merge that was tried. Warnings: left-alone, where something stayed; parted, for max-growth; peak-grows, where the
// ideal peak does; tagged-members, where recompute tags on them are not carried out yet; form, where a bucket is functional that
// was not to be.
//
// Numerics: all-gathers are exact; reduce-scatters and all-reduces may add up in another order, as a ring's order hangs on where
// an element stands in the buffer, and NCCL's choice of one on how much is sent at a time.
//
// O((nodes + dependences) log nodes), and as often as buckets are parted, log(members) times at most.
Result<PassResult> bucket(Graph& graph, const BucketOptions& options, PassContext& context);

}  // namespace fxopt
