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
  // The next lookup of objects may invalidate both references.
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

  // Returns whether a claim (claims.h) on the call holds. If the claim holds, adds to counted() the
  // hashes that the claim's rewrite rule computes for the call. `group` is a hash of the process
  // group, or zero if the group is unknown. `ranks` is a hash of the participants. `world` is a
  // hash of the earlier calls with unknown effects.
  bool issue(const Call& call, const Hash128& group, const Hash128& ranks, const Hash128& world);
  // Discards the result of an earlier collective in a storage that another collective is about to
  // fill.
  void forget(uint32_t storage);
  // Must be called when the storage is filled. `own_name` is the hash of the storage's content if
  // no rule applies. Adds to `waits` the hashes of the collectives that the wait completes. A
  // claimed collective counts as one collective for each tensor that it contains.
  void end_filling(uint32_t storage, const Hash128& pending, const Hash128& own_name, std::vector<Hash128>& waits);
  // For a storage that is still pending at the end of the graph, adds the hashes of the collectives
  // that fill the storage to `pending`.
  void add_pending(uint32_t storage, std::vector<Hash128>& pending) const;
  // The hashes of the collectives for which issue() returned true; the key is a hash of the process
  // group or of its ranks. A collective counts as one call for each tensor that it contains. The
  // order of the calls has no meaning, because a pass may merge the calls into other buckets and
  // issue them at another time.
  std::map<Hash128, std::vector<Hash128>>& counted() { return members_; }

  // -- values

  // If a claim (claims.h) on the call holds, gives the call's value the value number that the
  // claim's rewrite rule computes.
  void apply(const Call& call);

  std::vector<RefusedClaim>& refused() { return refused_; }

 private:
  // The operand of a collective may be a concatenation or a sum of at most this number of tensors.
  // Nested concatenations and sums can contain more tensors than the graph has nodes.
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
  // The result of an all-gather: `count` elements from each rank in `ranks`. `elements` is the hash
  // of the elements that this rank contributes, and `source` is the tensor that contains them.
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
    // The hashes that issue() added to counted() for this reduction. Empty for a sum of reductions.
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
  // the `cat` result. Valid while `content` is the hash of the storage's content.
  struct Parts {
    std::vector<int64_t> ranks;
    Source source;
    std::vector<SymInt> sizes, strides;
    int64_t step;  // number of elements from one slice to the next
    Hash128 content;
  };
  // A part of a gathered tensor to which kOwnShard gave the value number of this rank's input.
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

  HashMap<uint64_t, RewriteRule> claims_;  // by uid
  // The source of each copy. The key is `placed` of note_copy().
  HashMap<Hash128, Source, Hash128Hash> sources_;
  std::optional<Source> sent_;                       // see note_sent()
  HashMap<Hash128, SideBySide, Hash128Hash> rows_;   // concatenations, by hash of the content
  HashMap<Hash128, Sum, Hash128Hash> sums_;          // sums of two tensors, by hash of the sum
  HashMap<uint32_t, BucketResult> bucketed_;         // results of bucketed collectives whose claim holds; the key is
                                                     // the storage
  HashMap<uint32_t, Reduction> reduced_;             // results of kAddedReductions: reductions and their sums; the
                                                     // key is the storage
  HashMap<uint32_t, GatherResult> gathered_;         // results of all-gathers, by storage
  HashMap<uint32_t, Parts> parts_;                   // see Parts; by storage
  HashMap<uint32_t, OwnPart> own_parts_;             // the key is the new storage that kOwnShard gave the part
  std::map<Hash128, std::vector<Hash128>> members_;  // see counted()
  // For each storage that a collective fills: the hash of the storage's content when the collective
  // was issued.
  HashMap<uint32_t, Hash128> issued_;
  std::vector<RefusedClaim> refused_;
  KeyWords words_;
};

}  // namespace fxopt
