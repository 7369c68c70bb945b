#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/hash.h"
#include "core/hash_table.h"
#include "ir/alias/collectives.h"
#include "ir/check/equivalence/buckets.h"
#include "ir/check/equivalence/call_rules.h"
#include "ir/check/equivalence/claims.h"
#include "ir/check/equivalence/keys.h"
#include "ir/check/equivalence/memory.h"
#include "ir/check/equivalence/named_values.h"
#include "ir/graph/graph.h"

// RewriteRules applies the rewrite rules of claims.h while a graph is executed symbolically. Each
// value has a value number, which is a 128-bit hash of the expression that computes the value. A
// rule gives a value the same value number in the graphs before and after a pass, even if they
// compute the value in different ways. RewriteRules records where elements of tensors come from,
// and which tensors are operands of collectives. The rules do not depend on passes.

namespace fxopt {

// The value number of a sum of terms. It is computed from the sum of the terms' hashes, so it does
// not depend on the order of the terms.
struct NamedTotal {
  Hash128 sum;
  uint64_t count = 0;

  void add(const Hash128& name);
  void add(const NamedTotal& other);
  Hash128 name(bool is_pending) const;
};

class RewriteRules {
 public:
  // Claims of other graphs are ignored. Null means that there are no claims.
  RewriteRules(const Graph& graph, ModuleKeys& keys, CallRules& rules, GeometryTable& geometries, NamedMemory& memory,
               NamedValues& values, bool is_differentiated, const std::vector<Claim>* claims);

  // If has_claims() is false, no other member needs to be called.
  bool has_claims() const { return !claims_.empty(); }

  // A call that has run, with the tensor objects of its arguments (`given`) and results (`made`).
  // `given` and `made` refer to buffers that the symbolic execution may overwrite at its next
  // lookup of tensor objects. A Call must therefore not be stored.
  struct Call {
    NodeId node;
    const std::vector<uint32_t>& given;
    const std::vector<uint32_t>& made;
  };

  // -- observed calls

  // Records that the elements of the tensor object `source` were copied into another storage.
  // `placed` is the hash of these elements together with their place in that storage.
  void note_copy(const Hash128& placed, uint32_t source);
  void note_cat(const Call& call);
  void note_sum(const Call& call);
  // Must be called before a collective writes to its operand, because the operand's memory may
  // contain the data that the collective sends.
  void note_sent(uint32_t object);

  // -- collectives

  // Returns true if a claim (claims.h) on the call holds. The claim names a rewrite rule. If this
  // is the rule kPart or kOwnShard, issue() returns false, because apply() checks this claim. If
  // the claim holds, the claim's rewrite rule computes hashes that represent the call. issue() adds
  // these hashes to counted().
  //
  // `group` is a hash of the process group, or zero if the group is unknown. `ranks` is a hash of
  // the participants. `world` is a hash of the earlier calls with unknown effects.
  bool issue(const Call& call, const Hash128& group, const Hash128& ranks, const Hash128& world);
  // Must be called before a collective starts to fill `storage`. An earlier collective may have
  // filled the same storage. forget() discards the records about the result of the earlier
  // collective.
  void forget(uint32_t storage);
  // Must be called when a wait completes the collective that fills `storage`. `pending` is the hash
  // of the storage's content before the wait. A claim (claims.h) names the rewrite rule that
  // applies to the collective. end_filling() ignores all claims on the collective if the operand or
  // the result was written between the start of the collective and the wait.
  //
  // Sets the hash of the storage's content after the wait:
  // - If a claim with the rule kAddedReductions holds for the collective: to a hash that the rule
  //   computes.
  // - If no claim with the rule kAddedReductions holds for the collective: to the hash `own_name`.
  //
  // Adds hashes of the completed collective to `waits`:
  // - If a claim with the rule kBucket, kBucketedReduction or kAddedReductions holds for the
  //   collective: one hash for each concatenated or added tensor in the operand.
  // - If no claim with one of these rules holds for the collective: the hash `pending`.
  void end_filling(uint32_t storage, const Hash128& pending, const Hash128& own_name, std::vector<Hash128>& waits);
  // Adds to `pending` the hashes of the collective that fills `storage`: one hash, or one for each
  // tensor in the operand (see end_filling()). Must be called for each storage that a collective
  // still fills at the end of the graph.
  void add_pending(uint32_t storage, std::vector<Hash128>& pending) const;
  // The hashes of the collectives for which issue() returned true; the key is a hash of the process
  // group or of its ranks. If the claim's rule splits the operand into concatenated or added
  // tensors, the collective has one hash for each tensor. The order of the hashes has no meaning,
  // because a pass may merge collectives into other buckets and issue them at another time.
  std::map<Hash128, std::vector<Hash128>>& counted() { return members_; }

  // -- values

  // Applies the rewrite rule that a claim (claims.h) names for the call. If the rule's conditions
  // hold, the rule computes a new value number for the call's result. Otherwise adds the claim to
  // refused(). Does nothing without a claim, or if issue() has already checked the claim.
  void apply(const Call& call);

  std::vector<RefusedClaim>& refused() { return refused_; }

 private:
  // The operand of a collective may be a concatenation or a sum of at most this number of tensors.
  // A small graph can exceed this number, because concatenations and sums can be nested. For
  // example, after 30 calls `x = x + x`, `x` is a sum of 2^30 tensors.
  static constexpr size_t kMostParts = size_t{1} << 20;

  // A tensor at the time of a call: the hash of its content, and its geometry.
  struct Source {
    Hash128 data;
    GeometryId geometry;
  };
  // A collective with one operand and one result, both in row-major order.
  struct Single {
    const Geometry* from;
    const Geometry* to;
    Hash128 elements;  // hash of the operand's elements
  };
  // The result of an all-gather: `count` elements from each rank in `ranks`, in the order of
  // `ranks`. One of these ranks runs the graph, and is called "this rank". `source` is the operand
  // of the all-gather on this rank. `elements` is the hash of the elements in `source`.
  struct Gathered {
    std::vector<int64_t> ranks;
    Hash128 elements;
    Source source;
    int64_t count;
  };
  struct GatherResult {
    // The first entry is for the operand of this all-gather. If an earlier all-gather produced this
    // operand, the second entry is for the operand of the earlier all-gather, and so on.
    std::vector<Gathered> levels;
    Hash128 filled;  // hash of the storage's content after the wait
  };
  struct GatherPart {
    const GatherResult* result;
    SymInt offset;  // offset of the first element
  };
  struct BucketResult {
    SideBySide buffer;
    Hash128 filled;
  };
  struct Reduction {
    // Hashes that represent this reduction in counted(). If the operand is a sum of tensors, there
    // is one hash for each of these tensors. For any other operand, there is one hash. Empty for a
    // sum of reductions, which has no operand.
    std::vector<Hash128> members;
    NamedTotal total;  // hash of the sum of all addends
    SymInt count;      // number of elements of the result
    DType dtype;
    Hash128 filled;
  };
  struct Addend {
    Hash128 name;  // NamedMemory::elements_key() of the addend
    Hash128 data;  // NamedMemory::data_key() of the addend if its offset is 0, otherwise zero
  };
  struct Sum {
    std::array<Addend, 2> addends;
    DType dtype;
  };
  // The result of a `cat` whose operands are the slices of a gathered tensor, one slice for each
  // rank. `source` is the gather's operand. `sizes` and `strides` are the layout of one slice in
  // the `cat` result. `content` is the hash of the `cat` result's content. After a write to the
  // `cat` result, the hash differs, and the entry does not apply.
  struct Parts {
    std::vector<int64_t> ranks;
    Source source;
    std::vector<SymInt> sizes, strides;
    int64_t step;  // number of elements from one slice to the next
    Hash128 content;
  };
  // This rank's part of a gathered tensor, after the rule kOwnShard was applied to the part. The
  // part then has the same value number as this rank's input to the gather.
  struct OwnPart {
    uint32_t gather;  // storage of the gather's result
    SymInt offset, named_offset;
    Hash128 data;
  };

  bool issue_as_claimed(const Call& call, const Hash128& group, const Hash128& ranks, const Hash128& world);
  std::string issue_as_members(const Call& call, RewriteRule rule, const Hash128& group, const Hash128& ranks,
                               const Hash128& world);
  SideBySide members_given(NodeId node, CollectiveKind kind, uint32_t given, uint32_t made, bool is_out,
                           std::string& why);
  std::string check_place(NodeId node, uint32_t given, uint32_t made, const Geometry& from, int64_t count);
  std::string issue_as_gathers(const Call& call, const Hash128& world);
  std::string issue_as_sum(const Call& call, const Hash128& group, const Hash128& ranks, const Hash128& world);
  std::string note_gather(const Call& call);
  std::optional<Single> single(const Call& call, std::string& why);

  std::string name_by_part(NodeId node);
  std::string name_by_bucket(const Call& call);
  std::string name_by_sum(const Call& call);
  std::string name_by_shard(const Call& call);
  std::string name_by_copied_shard(const Call& call, uint32_t object);
  void stand_for(NodeId node, uint32_t object, const Hash128& data, GeometryId geometry);

  void note_rows(const Call& call);
  void note_parts(const Call& call);
  std::optional<Source> copied_to(uint32_t object);
  bool is_named_by_rule(uint32_t object) const { return memory_.storage_of(object).holder != 0; }
  const GatherResult* gathered_whole(uint32_t object);
  const GatherResult* gathered_on(uint32_t object);
  std::optional<GatherPart> part_of_gather(uint32_t object);
  bool adds_two(const Call& call);
  std::vector<Hash128> addends_of(const Addend& all, DType dtype) const;
  Hash128 data_of_all(uint32_t object);
  bool open_parts(SideBySide& bucket) const;
  bool copies_row_by_row(const Call& call);
  auto integers() {
    return [this](const Arg& arg) { return values_.integer_of(arg, keys_); };
  }
  const Arg* reduce_op_of(NodeId node) const;

  const Graph& graph_;
  const Module& module_;
  ModuleKeys& keys_;
  CallRules& rules_;
  GeometryTable& geometries_;
  NamedMemory& memory_;
  NamedValues& values_;
  const bool is_differentiated_;

  HashMap<uint64_t, RewriteRule> claims_;  // the rule of each claim; the key is the uid in the claim
  // The source tensor of each copy. The key is the argument `placed` of note_copy(), a hash of the
  // copied elements and their place.
  HashMap<Hash128, Source, Hash128Hash> sources_;
  std::optional<Source> sent_;                      // see note_sent()
  HashMap<Hash128, SideBySide, Hash128Hash> rows_;  // concatenations; the key is the hash of the content
  HashMap<Hash128, Sum, Hash128Hash> sums_;         // sums of two tensors; the key is the hash of the sum
  // Results of bucketed collectives for which a claim (claims.h) holds. The key is the storage of
  // the result.
  HashMap<uint32_t, BucketResult> bucketed_;
  // Reductions, and sums of reductions, for which a claim with the rule kAddedReductions holds. The
  // key is the storage of the result.
  HashMap<uint32_t, Reduction> reduced_;
  HashMap<uint32_t, GatherResult> gathered_;  // results of all-gathers; the key is the storage of the result
  HashMap<uint32_t, Parts> parts_;            // see Parts; the key is the storage of the `cat` result
  // Parts to which the rule kOwnShard was applied. The key is the new storage that stand_for()
  // created for the part.
  HashMap<uint32_t, OwnPart> own_parts_;
  std::map<Hash128, std::vector<Hash128>> members_;  // see counted()
  // For each storage that a collective fills: the hash of the storage's content when the collective
  // was issued.
  HashMap<uint32_t, Hash128> issued_;
  std::vector<RefusedClaim> refused_;
  KeyWords words_;
};

}  // namespace fxopt
