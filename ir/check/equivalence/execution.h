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

// Symbolic execution of a graph: each tensor is a name for the expression that computes it. Changes
// to objects, storages, generators and process groups are changes to names. Two graphs whose
// executions end alike compute the same.
//
// Objects, as in Python and ATen:
//
//   leaf of a node's value   an object: an in-place op returns the object that it was given
//   object                   a storage and a geometry: `set_` changes the former, `t_` the latter
//   storage                  its content, whether a collective has yet to fill it, and the group of
//                            its possible aliases
//
// A reader sees the current content through the object's geometry. A call is therefore named by its
// target and arguments, with tensors as (content, geometry). The content after a write is (write,
// call). A draw is also named by the state of the generator. No name contains a node, a storage or
// a place in the schedule, so a recomputed copy has the name of its original.

namespace fxopt {

// A tensor, integer or container inside a node's value. Containers come before their elements.
struct ValueShapeCell {
  using Kind = Cell::Kind;
  Kind kind = Kind::kPlain;
  bool is_dict = false;
  uint32_t count = 0;             // kContainer: elements
  uint32_t share = 0;             // kTensor: equal numbers above 0 share one storage
  bool may_share = false;         // they only may share it: see may_be_of_region()
  GeometryId geometry;            // kTensor
  std::optional<SymInt> integer;  // kPlain: its value if it is an integer
  Hash128 name;                   // its key, if it is an element of a dict
};
using ValueShape = std::vector<ValueShapeCell>;

// The tensors that a view shows, by the name of the call and its arguments.
struct ViewFact {
  enum class Kind : uint8_t { kSame, kView, kCopy, kEither };
  Kind kind = Kind::kEither;
  enum class Source : uint8_t { kRule, kRecord, kStorageIds };
  Source source = Source::kRule;  // origin: a rule, the recorded value, or the file's storage ids
  bool is_list = false;
  std::vector<GeometryId> tensors;
};

// Facts that the prover takes from the input graph: recorded sizes, strides and integers, and the
// inputs that share memory. A fact of the output graph counts only if it is here or can be
// calculated.
struct Axioms {
  GeometryTable geometries;
  bool is_open = true;  // the input graph is being executed: recorded facts become axioms
  // Whether results of calls are axioms. If not, a call is named with its recorded result, so two
  // calls with different recorded results differ. That is enough if both graphs were recorded
  // alike.
  bool keeps_results = false;
  // Whether a draw is named by its node instead of the state of the generator. If draws may be left
  // out, later draws get other numbers, which the caller has allowed.
  bool draws_by_name = false;
  HashMap<Hash128, ViewFact, Hash128Hash> views;
  HashMap<Hash128, GeometryId, Hash128Hash> changed;  // geometries after an in-place change
  HashMap<Hash128, SymInt, Hash128Hash> integers;
  HashMap<Hash128, ValueShape, Hash128Hash> inputs;  // graph inputs by position, attributes by name
  HashMap<Hash128, ValueShape, Hash128Hash> results;
  std::vector<Hash128> made;                   // first contents of the storages of the input graphs
  HashSet<Hash128, Hash128Hash> made_by_name;  // the same, filled on first use
  // By the geometry after a transposition of an unknown one: the transposition, and the geometry
  // that the same transposition restores.
  HashMap<GeometryId, std::pair<Hash128, GeometryId>> undone;
  // Reshapes that are known to be views: the input graph has them as `view`, which raises if it
  // copies.
  HashSet<Hash128, Hash128Hash> shown;
  HashSet<Hash128, Hash128Hash> asked;  // integers without a recorded value at their first use
  // An execution of the input graph has learned about something unknown (`shown`, `asked`,
  // GeometryTable::learn). The graph is executed again.
  bool has_learned = false;
  uint32_t key_bits = 128;  // in the names of calls
};

// The name of a node's computation.
struct NamedNode {
  NodeId node;
  uint64_t uid = 0;
  Hash128 key;
  uint64_t arguments = 0;   // a hint: without contents and other dependencies
  bool lacks_fact = false;  // a view whose tensors neither an axiom nor a calculation gives
};

// A tensor or other value that is visible from outside after the graph has run.
struct EndValue {
  NodeId node;        // its producer; invalid: a constant
  std::string label;  // "output 3", "input x", "attribute w"
  Hash128 content;    // as a reader sees it, without geometry
  Hash128 geometry;
  uint32_t storage = 0;     // numbered from 1 in this order; 0: not a tensor
  uint32_t object = 0;      // the same for tensor objects, which may be returned twice
  uint32_t may_be = 0;      // the first earlier value that may be the same object; 0: none
  uint32_t may_share = 0;   // the first earlier storage that may be the same one; 0: none
  bool is_changed = false;  // attributes: differs from its value at the start
};

// A call that changes a tensor in place, with the earlier calls that took or returned the tensor,
// each once. Autograd may have kept the tensor for these calls, and then refuses to differentiate.
struct ChangeInPlace {
  Hash128 call;
  std::vector<Hash128> kept_by;  // sorted

  friend auto operator<=>(const ChangeInPlace&, const ChangeInPlace&) = default;
};

// The end of an execution.
struct ExecutionEnd {
  std::vector<NamedNode> nodes;  // calls, in schedule order
  size_t num_inputs = 0;
  Hash128 output_structure;
  std::vector<EndValue> outputs, inputs, attributes;
  Hash128 generator, world, mode;
  std::vector<std::pair<Hash128, std::vector<Hash128>>> collectives;  // by group, by first issue
  std::vector<std::pair<Hash128, std::vector<Hash128>>>
      messages;  // by group: sends and receives, which must not be left out
  std::vector<std::pair<Hash128, std::vector<Hash128>>> issued;  // with repeated issues
  std::vector<Hash128> draws;                                    // by name, if Axioms::draws_by_name
  std::vector<Hash128> assertions, waits, pending;               // sorted, each once
  std::vector<ChangeInPlace> changes;                            // sorted, if is_differentiated
  std::vector<RefusedClaim> refused;
  size_t recorded_views = 0, storage_id_views = 0;  // views without a rule: see ViewFact::Source

  // Returns one name for the end.
  Hash128 key() const;
};

// Arguments of an execution.
struct ExecutionInput {
  const Graph& graph;
  ModuleKeys& keys;
  CallRules& rules;
  EffectMap& effects;
  Axioms& axioms;
  const HashMap<StringId, Hash128>& subgraphs;  // keys of the graphs that nodes run
  bool is_differentiated = false;               // `detach` and gradient modes count
  bool is_called = false;                       // run by other graphs: known by inputs and computation
  bool names_calls = true;                      // fill ExecutionEnd::nodes
  const std::vector<Claim>* claims = nullptr;   // only those of this graph count
  // For the graph of a step: the names of its inputs, in schedule order. Null: inputs go by
  // position.
  const std::vector<StringId>* input_names = nullptr;
};

// Executes the graph. Expected O(nodes + arguments + tensors).
ExecutionEnd execute(const ExecutionInput& input);

}  // namespace fxopt
