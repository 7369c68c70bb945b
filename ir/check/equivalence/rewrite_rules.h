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

// The rewrite rules of claims.h during symbolic execution. If a rule names a value, the value has
// the same name in both graphs, even if the graphs compute the value in different ways. The rules
// record where elements of tensors come from, and which tensors are operands of collectives. The
// rules do not depend on passes.

namespace fxopt {

// A sum of terms in any order. The name of the sum is the sum of the hashes of the terms' names.
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

  // A call that has run. The next lookup of objects may make the references to object lists
  // invalid.
  struct Call {
    NodeId node;
    const std::vector<uint32_t>& given;
    const std::vector<uint32_t>& made;
  };

  // -- observed calls

  // Records that the elements of `source` were copied, and that the copied elements are named
  // `placed`.
  void note_copy(const Hash128& placed, uint32_t source);
  void note_cat(const Call& call);
  void note_sum(const Call& call);
  // Must be called before a collective writes to its operand. The operand's memory may contain the
  // data that the collective sends.
  void note_sent(uint32_t object);

  // -- collectives

  // Returns whether a claim on the call holds. If a claim holds, the call is recorded in counted()
  // as the rule defines. `group` is the name of the process group, or zero if the group is unknown.
  // `ranks` is the name of the participants, and `world` is the name of the earlier effects.
  bool issue(const Call& call, const Hash128& group, const Hash128& ranks, const Hash128& world);
  // Discards the result of an earlier collective in a storage that another collective is about to
  // fill.
  void forget(uint32_t storage);
  // Must be called when the storage is filled. `own_name` is the name of the storage's content if
  // no rule applies. Adds to `waits` the names that the rule gives to the wait.
  void end_filling(uint32_t storage, const Hash128& pending, const Hash128& own_name, std::vector<Hash128>& waits);
  // If the storage is still pending at the end, adds the names that the rule gives to the pending
  // collective.
  void add_pending(uint32_t storage, std::vector<Hash128>& pending) const;
  // The calls that are counted by rules, for each group and in any order. A rule allows a pass to
  // change which members form one call, and when the call is issued.
  std::map<Hash128, std::vector<Hash128>>& counted() { return members_; }

  // -- values

  // If a claim on the call holds, gives the call's value the name that the rule constructs.
  void apply(const Call& call);

  std::vector<RefusedClaim>& refused() { return refused_; }

 private:
  // The largest number of parts of one call. Nested parts can be more numerous than the nodes.
  static constexpr size_t kMostParts = size_t{1} << 20;

  // A tensor as a call saw it: content and geometry.
  struct Source {
    Hash128 data;
    GeometryId geometry;
  };
  // A collective with one operand and one result, both in row-major order.
  struct Single {
    const Geometry* from;
    const Geometry* to;
    Hash128 elements;  // the operand's elements
  };
  // One level of an all-gather's result: `count` elements from each of these ranks. The elements
  // have the names that they have on this rank.
  struct Gathered {
    std::vector<int64_t> ranks;
    Hash128 elements;
    Source source;
    int64_t count;
  };
  struct GatherResult {
    // The first level has the operand of this gather. The other levels have the operands of the
    // earlier gathers that produced the operand.
    std::vector<Gathered> levels;
    Hash128 filled;  // content of the storage after the wait
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
    std::vector<Hash128> members;  // for a collective: the names under which the call is counted
    NamedTotal total;              // the sum of all addends
    SymInt count;                  // number of elements of the result
    DType dtype;
    Hash128 filled;
  };
  struct Addend {
    Hash128 name, data;  // `data` is the content if the offset is 0, otherwise zero
  };
  struct Sum {
    std::array<Addend, 2> addends;
    DType dtype;
  };
  // The result of a cat of all parts of a gather. The record holds the gather's operand and the
  // layout of the parts. The record is valid while the storage contains `content`.
  struct Parts {
    std::vector<int64_t> ranks;
    Source source;
    std::vector<SymInt> sizes, strides;
    int64_t step;  // number of elements from one part to the next
    Hash128 content;
  };
  // A value named by kOwnShard.
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
  // The source of each copy, by the name of the copied elements.
  HashMap<Hash128, Source, Hash128Hash> sources_;
  std::optional<Source> sent_;                       // see note_sent()
  HashMap<Hash128, SideBySide, Hash128Hash> rows_;   // concatenations, by content of the buffer
  HashMap<Hash128, Sum, Hash128Hash> sums_;          // sums of two tensors, by content of the sum
  HashMap<uint32_t, BucketResult> bucketed_;         // results of claimed collectives, by storage
  HashMap<uint32_t, Reduction> reduced_;             // results of claimed reductions, by storage
  HashMap<uint32_t, GatherResult> gathered_;         // results of all-gathers, by storage
  HashMap<uint32_t, Parts> parts_;                   // cats of all parts of a gather, by storage
  HashMap<uint32_t, OwnPart> own_parts_;             // values named by kOwnShard, by their storage
  std::map<Hash128, std::vector<Hash128>> members_;  // the calls that are counted by rules
  HashMap<uint32_t, Hash128> issued_;                // content when the call was issued, by storage
  std::vector<RefusedClaim> refused_;
  KeyWords words_;
};

}  // namespace fxopt
