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

// The laws of claims.h in a graph that is run on names: what is named by a law is named so in both graphs, however the value was
// computed. They know where the elements of tensors come from, and what collectives were given; nothing of passes.

namespace fxopt {

// What is added up, in any order: by the sum of hashes of the names.
struct NamedTotal {
  Hash128 sum;
  uint64_t count = 0;

  void add(const Hash128& name);
  void add(const NamedTotal& other);
  Hash128 name(bool is_pending) const;
};

class Laws {
 public:
  // `claims`: those of this graph count; null: there are none.
  Laws(const Graph& graph, ModuleKeys& keys, CallRules& rules, GeometryTable& geometries, NamedMemory& memory,
       NamedValues& values, bool is_differentiated, const std::vector<Claim>* claims);

  // Nothing else need be asked where there are none.
  bool has_claims() const { return !claims_.empty(); }

  // A call that has run; objects of tensors, which a question for others may end.
  struct Call {
    NodeId node;
    const std::vector<uint32_t>& given;
    const std::vector<uint32_t>& made;
  };

  // -- what is noted of calls

  // The elements of an object were put somewhere, and are called so there.
  void note_copy(const Hash128& placed, uint32_t source);
  void note_cat(const Call& call);
  void note_sum(const Call& call);
  // Before a collective writes to what it is given: what it sends may lie in it.
  void note_sent(uint32_t object);

  // -- collectives

  // Whether a law is claimed of the call that holds: then it counts as what the law says. `group`: by the name of the process
  // group, zero where it cannot be told; `ranks`: of those that take part; `world`: of effects before.
  bool issue(const Call& call, const Hash128& group, const Hash128& ranks, const Hash128& world);
  // The storage is to be filled anew: what a collective before gave is there no more.
  void forget(uint32_t storage);
  // The storage is filled now. `own_name`: what it holds, where no law says; and what the wait counts as.
  void end_filling(uint32_t storage, const Hash128& pending, const Hash128& own_name, std::vector<Hash128>& waits);
  // What it counts as at the end that the storage has yet to be filled.
  void add_pending(uint32_t storage, std::vector<Hash128>& pending) const;
  // By group the calls that laws count, in any order: which of them are one call, and when, is what a law lets change.
  std::map<Hash128, std::vector<Hash128>>& counted() { return members_; }

  // -- values

  // Names what the call yields, where a law is claimed of it.
  void apply(const Call& call);

  std::vector<RefusedClaim>& refused() { return refused_; }

 private:
  static constexpr size_t kMostParts = size_t{1} << 20;  // of one call: what is nested may be many more than nodes

  // A tensor as a reader saw it.
  struct Source {
    Hash128 data;
    GeometryId geometry;
  };
  // Of a collective of one tensor that makes another, both laid out row by row.
  struct Single {
    const Geometry* from;
    const Geometry* to;
    Hash128 elements;  // of what it is given
  };
  // What lies in the result of an all-gather: `count` elements of each of these ranks, as this one's own tensor names them.
  struct Gathered {
    std::vector<int64_t> ranks;
    Hash128 elements;
    Source source;
    int64_t count;
  };
  struct GatherResult {
    std::vector<Gathered>
        levels;      // as the call is given it, then as gathers before it were, each over the ranks of all since
    Hash128 filled;  // what the storage holds once it is there
  };
  struct GatherPart {
    const GatherResult* result;
    SymInt offset;  // of its first element
  };
  struct BucketResult {
    SideBySide buffer;
    Hash128 filled;
  };
  struct Reduction {
    std::vector<Hash128> members;  // of a collective: what it counts as
    NamedTotal total;              // of what is added up
    SymInt count;                  // elements of the result
    DType dtype;
    Hash128 filled;
  };
  struct Addend {
    Hash128 name, data;  // data: what all of it holds, which may be a sum; zero: it does not show all
  };
  struct Sum {
    std::array<Addend, 2> addends;
    DType dtype;
  };
  // Of a cat of all parts of a gather: what it was given and how its parts lie, while it holds `content`.
  struct Parts {
    std::vector<int64_t> ranks;
    Source source;
    std::vector<SymInt> sizes, strides;
    int64_t step;  // elements from one to the next
    Hash128 content;
  };
  // What kOwnShard named.
  struct OwnPart {
    uint32_t gather;  // storage
    SymInt offset, named_offset;
    Hash128 data;
  };

  bool issue_as_claimed(const Call& call, const Hash128& group, const Hash128& ranks, const Hash128& world);
  std::string issue_as_members(const Call& call, Law law, const Hash128& group, const Hash128& ranks,
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
  bool is_named_by_law(uint32_t object) const { return memory_.storage_of(object).stands_on != 0; }
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

  HashMap<uint64_t, Law> claims_;                    // by uid
  HashMap<Hash128, Source, Hash128Hash> sources_;    // whose elements they are, by what they are called there
  std::optional<Source> sent_;                       // see note_sent()
  HashMap<Hash128, SideBySide, Hash128Hash> rows_;   // what lies in buffers, by what they hold
  HashMap<Hash128, Sum, Hash128Hash> sums_;          // by what the sum holds
  HashMap<uint32_t, BucketResult> bucketed_;         // results of collectives that are claimed, by storage
  HashMap<uint32_t, Reduction> reduced_;             // likewise
  HashMap<uint32_t, GatherResult> gathered_;         // results of all-gathers, by storage
  HashMap<uint32_t, Parts> parts_;                   // by storage
  HashMap<uint32_t, OwnPart> own_parts_;             // by the storage of that name
  std::map<Hash128, std::vector<Hash128>> members_;  // by group
  HashMap<uint32_t, Hash128> issued_;                // what storages held when a collective began to fill them
  std::vector<RefusedClaim> refused_;
  KeyWords words_;
};

}  // namespace fxopt
