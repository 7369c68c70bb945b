#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/hash.h"
#include "core/hash_table.h"
#include "ir/alias/effect_map.h"
#include "ir/check/equivalence/call_rules.h"
#include "ir/check/equivalence/claims.h"
#include "ir/check/equivalence/keys.h"
#include "ir/check/equivalence/named_values.h"
#include "ir/graph/graph.h"

// Symbolic execution of a graph by value numbering. Each tensor is represented by a value number: a
// 128-bit hash of the expression that computes the tensor. A change of an object, a storage, a
// generator or a process group changes the value numbers of later values that depend on it. If two
// executions end with the same value numbers, their graphs compute the same results.
//
// The execution models objects as Python and ATen do:
//
// - Each tensor in the value of a node refers to a tensor object. An in-place operator returns the
//   object that it received.
// - Each object has a storage and a geometry (sizes, strides, offset, dtype). `set_` gives the
//   object another storage, and `t_` changes the geometry.
// - Each storage has a content and a group of possible aliases. A running collective may not have
//   filled the storage yet.
//
// A call reads the current content of a storage through the geometry of an object. The value number
// of a call is therefore a hash of its target and its arguments. Each tensor argument contributes
// the hashes of its content and of its geometry. A write gives the content a new hash, which is
// computed from the value number of the writing call. The value number of a random draw also
// contains the state of the generator. Nodes, storages and positions in the schedule are not part
// of a value number. A recomputed copy therefore has the value number of its original.

namespace fxopt {

// A tensor, integer or container inside a node's value. A container comes before its elements.
struct ValueShapeCell {
  using Kind = Cell::Kind;
  Kind kind = Kind::kPlain;
  bool is_dict = false;
  uint32_t count = 0;             // kContainer: number of elements
  uint32_t share = 0;             // kTensor: cells with the same number above 0 share one storage
  bool may_share = false;         // sharing is possible but not certain: see may_be_of_region()
  GeometryId geometry;            // kTensor: the geometry
  std::optional<SymInt> integer;  // kPlain: the value if it is an integer
  Hash128 name;                   // hash of the dict key if the cell is an element of a dict
};
using ValueShape = std::vector<ValueShapeCell>;

// The known properties of the tensors that a view call returns. Axioms::views finds a fact by the
// hash of the call and its arguments.
struct ViewFact {
  enum class Kind : uint8_t { kSame, kView, kCopy, kEither };
  Kind kind = Kind::kEither;
  enum class Source : uint8_t { kRule, kRecord, kStorageIds };
  // The origin of the fact: a rule, the recorded value, or the storage ids of the file.
  Source source = Source::kRule;
  bool is_list = false;
  std::vector<GeometryId> tensors;
};

// Facts that the prover uses from the input graph: recorded sizes, strides and integers, and which
// inputs share memory. A fact of the output graph is used only if the input graph has the same
// fact, or if the fact can be calculated.
struct Axioms {
  GeometryTable geometries;
  // True while the input graph is executed. During that time, recorded facts become axioms.
  bool is_open = true;
  // Whether recorded results of calls are axioms. If false, the value number of a call contains the
  // call's recorded result, so two calls with different recorded results differ. Use true if the
  // two graphs come from separate traces (ProofOptions::recorded_apart), and otherwise false.
  bool keeps_results = false;
  // Whether a random draw is identified by the name of its node. If false, the draw is identified
  // by the state of the random generator. True if the caller allows passes to remove unused draws.
  // Later draws then get other random numbers, which the caller accepts.
  bool draws_by_name = false;
  // The keys of these tables are hashes of calls, inputs and attributes.
  HashMap<Hash128, ViewFact, Hash128Hash> views;
  HashMap<Hash128, GeometryId, Hash128Hash> changed;  // geometries after in-place changes
  HashMap<Hash128, SymInt, Hash128Hash> integers;
  HashMap<Hash128, ValueShape, Hash128Hash> inputs;  // inputs by position, attributes by name
  HashMap<Hash128, ValueShape, Hash128Hash> results;
  // NamedStorage::made of each storage in the input graphs. This hash normally identifies the call,
  // input or attribute that created the storage.
  std::vector<Hash128> made;
  HashSet<Hash128, Hash128Hash> made_by_name;  // `made` as a set, filled on first use
  // Transpositions of tensors with an unknown geometry. The key is the geometry after the
  // transposition. The value holds a hash of the transposition, and the geometry before the
  // transposition. A second transposition with the same hash restores this geometry.
  HashMap<GeometryId, std::pair<Hash128, GeometryId>> undone;
  // Hashes of `reshape` calls that are known to return a view and not a copy. For each of these
  // hashes, the input graph contains a `view` call with the same hash. A `view` call raises an
  // error if a copy is necessary. A `reshape` with equal arguments therefore returns a view.
  HashSet<Hash128, Hash128Hash> shown;
  // Hashes of the integers that had no recorded value when the execution first needed them.
  HashSet<Hash128, Hash128Hash> asked;
  // True if an execution of the input graph found a fact that was unknown before (`shown`, `asked`,
  // GeometryTable::learn). The graph must be executed again.
  bool has_learned = false;
  uint32_t key_bits = 128;  // number of bits in the hashes of calls
};

// The value number of a node.
struct NamedNode {
  NodeId node;
  uint64_t uid = 0;
  Hash128 key;
  // A 64-bit hash of the call's target and arguments. A tensor argument normally contributes only
  // its geometry. Unlike `key`, this hash does not depend on contents of tensors, on modes, or on
  // the states of generators and process groups. It only makes the explanation of a difference more
  // precise.
  uint64_t arguments = 0;
  // True for a view if the sizes and strides of its result are unknown. They cannot be calculated,
  // and the input graph does not record them (see Axioms).
  bool lacks_fact = false;
};

// A tensor or other value that is visible from outside after the graph has run.
struct EndValue {
  NodeId node;        // producer of the value; invalid for a constant
  std::string label;  // the name in reports: "output 3", "input x", "attribute w"
  Hash128 content;    // hash of the visible content, without sizes and strides
  Hash128 geometry;   // hash of the geometry
  // The number of the storage. Storages are numbered from 1 in the order of the values: inputs,
  // then outputs. The number is 0 in these cases:
  // - The value is not a tensor.
  // - The value is an attribute, and no input or output has the same storage.
  uint32_t storage = 0;
  // The number of the tensor object. Objects are numbered in the same way as storages. Two values
  // may have the same number, because a graph may return one object twice.
  uint32_t object = 0;
  // Some earlier values may be the same tensor object as this value. `may_be` is the number of the
  // first of these earlier values. Only tensors are counted, from 1. `may_be` is 0 in these cases:
  // - The value is an attribute, or it is not a tensor.
  // - No earlier value may be the same object.
  // - The first of these earlier values is certainly the same object. Both values then have the
  //   same number in `object`.
  uint32_t may_be = 0;
  // Some earlier values may have the same storage as this value. `may_share` is the number in
  // `storage` of the first of these earlier values. `may_share` is 0 in these cases:
  // - The value is an attribute, or it is not a tensor.
  // - No earlier value may have the same storage.
  // - The first of these earlier values certainly has the same storage. Both values then have the
  //   same number in `storage`.
  uint32_t may_share = 0;
  // Whether an attribute's value differs from its value at the start.
  bool is_changed = false;
};

// A call that changes a tensor in place. `kept_by` lists the calls that took or returned a tensor
// in the changed storage, without duplicates. Calls before the previous change of this storage are
// not listed. Views, calls that may return a view (for example `reshape`), getitems of containers
// and queries for sizes are not listed either. Autograd may have kept the tensor for a listed call.
// In that case, autograd refuses to differentiate this call after the change.
struct ChangeInPlace {
  Hash128 call;
  std::vector<Hash128> kept_by;  // sorted

  friend auto operator<=>(const ChangeInPlace&, const ChangeInPlace&) = default;
};

// The state at the end of an execution. Calls and states are represented by hashes.
struct ExecutionEnd {
  std::vector<NamedNode> nodes;  // the calls, in schedule order
  size_t num_inputs = 0;
  Hash128 output_structure;
  std::vector<EndValue> outputs, inputs, attributes;
  // `generator` is the state of the random generator. `world` is the state of everything that may
  // be changed by a call with unknown effects. `mode` is the state of modes (gradient mode,
  // autocast).
  Hash128 generator, world, mode;
  // The collectives of each group, with a hash of the group. If several calls are equal, only the
  // first of these calls is listed.
  std::vector<std::pair<Hash128, std::vector<Hash128>>> collectives;
  // The sends and receives of each group. A pass must not remove a send or a receive.
  std::vector<std::pair<Hash128, std::vector<Hash128>>> messages;
  // The same as `collectives`, but with repetitions: if several calls are equal, the list has one
  // entry for each call. Exception: for a collective with a valid claim (claims.h), the list
  // contains the hashes that RewriteRules::counted() returns for this collective. Each of these
  // hashes is listed only once.
  std::vector<std::pair<Hash128, std::vector<Hash128>>> issued;
  // Hashes of the names of the nodes that draw random numbers. Filled only if Axioms::draws_by_name
  // is set.
  std::vector<Hash128> draws;
  std::vector<Hash128> assertions, waits, pending;  // sorted, without duplicates
  // Sorted. Empty if ExecutionInput::is_differentiated is false.
  std::vector<ChangeInPlace> changes;
  std::vector<RefusedClaim> refused;
  // Number of view calls whose ViewFact has Source::kRecord (`recorded_views`) or
  // Source::kStorageIds (`storage_id_views`).
  size_t recorded_views = 0, storage_id_views = 0;

  // Returns one hash of the whole state.
  Hash128 key() const;
};

// Arguments of an execution.
struct ExecutionInput {
  const Graph& graph;
  ModuleKeys& keys;
  CallRules& rules;
  EffectMap& effects;
  Axioms& axioms;
  const HashMap<StringId, Hash128>& subgraphs;  // hashes of the graphs that nodes run, by name
  bool is_differentiated = false;               // whether `detach` and gradient modes matter
  // True if nodes of other graphs run this graph. The flag selects the facts from which the hash of
  // an input is computed:
  // - true: the position of the input, and the recorded properties of all inputs (ValueShape)
  // - false: the position of the input, and the name of the graph. Exception: see `input_names`
  //
  // With `true`, two graphs with equal inputs and equal computations have the same
  // ExecutionEnd::key(), even if the names of the graphs differ.
  bool is_called = false;
  bool names_calls = true;                     // whether to fill ExecutionEnd::nodes
  const std::vector<Claim>* claims = nullptr;  // claims of other graphs are ignored
  // The names of the inputs, in schedule order. Only for the graph of a step. If null, inputs are
  // identified by position.
  const std::vector<StringId>* input_names = nullptr;
};

// Executes the graph. Expected time O(nodes + arguments + tensors).
ExecutionEnd execute(const ExecutionInput& input);

}  // namespace fxopt
