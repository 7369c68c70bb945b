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

// The rewrite rules of claims.h during symbolic execution. A value named by a rule has that name in
// both graphs, however it was computed. The rules know where elements of tensors come from and
// which tensors collectives took. They know nothing about passes.

namespace fxopt {

// A sum of terms in any order, named by the sum of the hashes of their names.
struct NamedTotal {
  Hash128 sum;
  uint64_t count = 0;

  void add(const Hash128& name);
  void add(const NamedTotal& other);
  Hash128 name(bool is_pending) const;
};

class RewriteRules {
 public:
  // `claims`: only those of this graph count. Null: none.
  RewriteRules(const Graph& graph, ModuleKeys& keys, CallRules& rules, GeometryTable& geometries, NamedMemory& memory,
               NamedValues& values, bool is_differentiated, const std::vector<Claim>* claims);

  // If false, no other member needs to be called.
  bool has_claims() const { return !claims_.empty(); }

  // A call that has run. The references to object lists may become invalid with the next lookup of
  // others.
  struct Call {
    NodeId node;
    const std::vector<uint32_t>& given;
    const std::vector<uint32_t>& made;
  };

  // -- observed calls

  // Records that the elements of `source` were copied somewhere, where they are named `placed`.
  void note_copy(const Hash128& placed, uint32_t source);
  void note_cat(const Call& call);
  void note_sum(const Call& call);
  // Called before a collective writes to its operand, whose memory may hold the data that it sends.
  void note_sent(uint32_t object);

  // -- collectives

  // Returns whether a claim on the call holds. The call then counts as the rule defines. `group`:
  // by the name of the process group, zero if unknown; `ranks`: names the participants; `world`:
  // names earlier effects.
  bool issue(const Call& call, const Hash128& group, const Hash128& ranks, const Hash128& world);
  // Forgets the result of an earlier collective in a storage that is about to be filled again.
  void forget(uint32_t storage);
  // Called when the storage is filled. `own_name`: its content without a rule. Adds the names that
  // the wait counts as to `waits`.
  void end_filling(uint32_t storage, const Hash128& pending, const Hash128& own_name, std::vector<Hash128>& waits);
  // Adds the names that count for a storage still pending at the end.
  void add_pending(uint32_t storage, std::vector<Hash128>& pending) const;
  // By group, the calls that rules count, in any order. A rule permits a change of which members
  // form one call, and when it is issued.
  std::map<Hash128, std::vector<Hash128>>& counted() { return members_; }

  // -- values

  // Names the value of the call if a claim on it holds.
  void apply(const Call& call);

  std::vector<RefusedClaim>& refused() { return refused_; }

 private:
  static constexpr size_t kMostParts = size_t{1} << 20;  // per call; nesting can exceed nodes

  // A tensor as its reader saw it.
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
  // A level of an all-gather's result: `count` elements from each of these ranks, named as on this
  // rank.
  struct Gathered {
    std::vector<int64_t> ranks;
    Hash128 elements;
    Source source;
    int64_t count;
  };
  struct GatherResult {
    std::vector<Gathered> levels;  // the operand, then operands of earlier gathers over all ranks
    Hash128 filled;                // content of the storage after the wait
  };
  struct GatherPart {
    const GatherResult* result;
    SymInt offset;  // its first element
  };
  struct BucketResult {
    SideBySide buffer;
    Hash128 filled;
  };
  struct Reduction {
    std::vector<Hash128> members;  // for a collective: the names that it counts as
    NamedTotal total;              // all addends
    SymInt count;                  // elements of the result
    DType dtype;
    Hash128 filled;
  };
  struct Addend {
    Hash128 name, data;  // data: its content if its offset is 0; otherwise zero
  };
  struct Sum {
    std::array<Addend, 2> addends;
    DType dtype;
  };
  // The result of a cat of all parts of a gather, with the gather's operand and the layout of the
  // parts. Valid while the storage holds `content`.
  struct Parts {
    std::vector<int64_t> ranks;
    Source source;
    std::vector<SymInt> sizes, strides;
    int64_t step;  // elements from one part to the next
    Hash128 content;
  };
  // A value named by kOwnShard.
  struct OwnPart {
    uint32_t gather;  // storage
    SymInt offset, named_offset;
    Hash128 data;
  };

  bool issue_as_claimed(const Call& call, const Hash128& group, const Hash128& ranks, const Hash128& world);
  std::string issue_as_members(const Call& call, RewriteRule law, const Hash128& group, const Hash128& ranks,
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

  HashMap<uint64_t, RewriteRule> claims_;            // by uid
  HashMap<Hash128, Source, Hash128Hash> sources_;    // source, by name at the destination
  std::optional<Source> sent_;                       // see note_sent()
  HashMap<Hash128, SideBySide, Hash128Hash> rows_;   // concatenations, by buffer content
  HashMap<Hash128, Sum, Hash128Hash> sums_;          // by the content of the sum
  HashMap<uint32_t, BucketResult> bucketed_;         // results of claimed collectives, by storage
  HashMap<uint32_t, Reduction> reduced_;             // likewise
  HashMap<uint32_t, GatherResult> gathered_;         // results of all-gathers, by storage
  HashMap<uint32_t, Parts> parts_;                   // by storage
  HashMap<uint32_t, OwnPart> own_parts_;             // by the storage of the named value
  std::map<Hash128, std::vector<Hash128>> members_;  // by group
  HashMap<uint32_t, Hash128> issued_;                // content at the issue, by storage
  std::vector<RefusedClaim> refused_;
  KeyWords words_;
};

}  // namespace fxopt
