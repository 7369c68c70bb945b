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
//   tensor in a value   refers to an object. An in-place operator returns the object that it
//                       received.
//   object              has a storage and a geometry (sizes, strides, offset, dtype). `set_`
//                       changes the storage, and `t_` changes the geometry.
//   storage             has a content and a group of possible aliases. A running collective may not
//                       have filled the storage yet.
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
  // call's recorded result, so two calls with different recorded results differ. False is enough if
  // both graphs were recorded in the same way.
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
  std::vector<Hash128> made;                   // hashes of the first contents of the input graphs' storages
  HashSet<Hash128, Hash128Hash> made_by_name;  // `made` as a set, filled on first use
  // Transpositions of tensors with an unknown geometry. The key is the geometry after the
  // transposition. The value holds a hash of the transposition, and the geometry before the
  // transposition. A second transposition with the same hash restores this geometry.
  HashMap<GeometryId, std::pair<Hash128, GeometryId>> undone;
  // Hashes of the reshapes that are known to be views. The input graph contains these reshapes as
  // `view`, which raises an error if a copy is necessary.
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
  // A 64-bit hash of the call without the contents of operands and without other dependencies. It
  // only makes the explanation of a difference more precise.
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
  // The number of the storage. Storages are numbered from 1 in the order of the values. The number
  // is 0 if the value is not a tensor.
  uint32_t storage = 0;
  // The number of the tensor object. Objects are numbered in the same way as storages. One object
  // may be returned twice.
  uint32_t object = 0;
  // The number of the first earlier value that may be the same object, or 0 if no such value
  // exists.
  uint32_t may_be = 0;
  // The number of the first earlier storage that may be the same storage, or 0 if no such storage
  // exists.
  uint32_t may_share = 0;
  // Whether an attribute's value differs from its value at the start.
  bool is_changed = false;
};

// A call that changes a tensor in place. `kept_by` lists the earlier calls that took or returned
// the tensor, without duplicates. Autograd may have kept the tensor for these calls. In that case,
// autograd refuses to differentiate.
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
  // The collectives of each group, as in `collectives`, but each of several equal calls is listed.
  // Collectives whose claim holds (RewriteRules::issue()) are the exception: equal entries of
  // counted() are listed once.
  std::vector<std::pair<Hash128, std::vector<Hash128>>> issued;
  // Hashes of the names of the nodes that draw random numbers. Filled only if Axioms::draws_by_name
  // is set.
  std::vector<Hash128> draws;
  std::vector<Hash128> assertions, waits, pending;  // sorted, without duplicates
  std::vector<ChangeInPlace> changes;               // sorted, only if is_differentiated
  std::vector<RefusedClaim> refused;
  // Numbers of views without a rule, by ViewFact::Source.
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
  // Whether other graphs run this graph. The graph is then identified by its inputs and
  // computation.
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
