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

// A graph run on names instead of numbers: each tensor is a name for the expression that computes it, and what is done to
// objects, storages, generators and process groups is done to names. Two graphs whose runs end alike compute the same.
//
// What holds what, as in Python and ATen:
//
//   a leaf of a node's value   an object: an in-place op hands back the object that it was given
//   an object                  a storage and a geometry: `set_` changes the one, `t_` the other
//   a storage                  its content, whether a collective has yet to fill it, and the group of those that may be it
//
// A reader sees the content at that moment through the object's geometry. So a call is named by its target and
// arguments, tensors by (content, geometry); what it writes gets (write, call) for content; a draw is named by the state
// of the generator, too. No name holds a node, a storage or a place in the schedule: a recomputed copy has its
// original's.

namespace fxopt {

// A tensor, integer or container inside what a node yields, containers before what they hold.
struct ValueShapeCell {
  using Kind = Cell::Kind;
  Kind kind = Kind::kPlain;
  bool is_dict = false;
  uint32_t count = 0;             // kContainer: elements
  uint32_t share = 0;             // kTensor: those of one number above 0 lie on one storage
  bool may_share = false;         // they only may: see may_be_of_region()
  GeometryId geometry;            // kTensor
  std::optional<SymInt> integer;  // kPlain: where it is one
  Hash128 name;                   // of an element of a dict
};
using ValueShape = std::vector<ValueShapeCell>;

// What a view shows, by name of the call and of what it is given.
struct ViewFact {
  enum class Kind : uint8_t { kSame, kView, kCopy, kEither };
  Kind kind = Kind::kEither;
  enum class Source : uint8_t { kRule, kRecord, kStorageIds };
  Source source = Source::kRule;  // what tells: a rule, what is recorded of it, or the file's storage ids
  bool is_list = false;
  std::vector<GeometryId> tensors;
};

// What the graph before is believed to be right in: recorded sizes, strides and integers, and which inputs share memory.
// Of the graph after nothing is read that is not found here or calculated.
struct Axioms {
  GeometryTable geometries;
  bool is_open = true;  // the graph before is run: what is recorded becomes an axiom
  // Whether the results of calls are axioms, too. Else a call is named with its recorded result, so that two calls whose
  // results are recorded differently differ: enough where both graphs were recorded alike.
  bool keeps_results = false;
  // Whether a draw is known by its node's name and not by the state of the generator: where draws may be left out, those
  // after them draw other numbers, which the caller has allowed.
  bool draws_by_name = false;
  HashMap<Hash128, ViewFact, Hash128Hash> views;
  HashMap<Hash128, GeometryId, Hash128Hash> changed;  // geometries after a change in place
  HashMap<Hash128, SymInt, Hash128Hash> integers;
  HashMap<Hash128, ValueShape, Hash128Hash> inputs;  // of a graph, by position; of attributes, by name
  HashMap<Hash128, ValueShape, Hash128Hash> results;
  std::vector<Hash128> made;                   // what the storages of the graphs before hold first
  HashSet<Hash128, Hash128Hash> made_by_name;  // the same, once it is asked for
  // What a transposition of something unknown gives: the same one gives the second back.
  HashMap<GeometryId, std::pair<Hash128, GeometryId>> undone;
  // Reshapes that a `view` of the graph before shows to be views: it raises where they copy.
  HashSet<Hash128, Hash128Hash> shown;
  HashSet<Hash128, Hash128Hash> asked;  // integers of which nothing was recorded when they were first met
  // A run of the graph before has learned what something unknown is (`shown`, `asked`, GeometryTable::learn): it is run
  // again.
  bool has_learned = false;
  uint32_t key_bits = 128;  // of names of calls
};

// The name of what one node computes.
struct NamedNode {
  NodeId node;
  uint64_t uid = 0;
  Hash128 key;
  uint64_t arguments = 0;   // a hint: without what its tensors hold and what else it depends on
  bool lacks_fact = false;  // it is a view, and no axiom or calculation tells what it shows
};

// A tensor, or another value, that can be seen from outside when the graph has run.
struct EndValue {
  NodeId node;        // that yields it; invalid: a constant
  std::string label;  // "output 3", "input x", "attribute w"
  Hash128 content;    // what a reader gets, geometry aside
  Hash128 geometry;
  uint32_t storage = 0;     // numbered from 1 in this order; 0: no tensor
  uint32_t object = 0;      // the same of tensor objects: one may be returned twice, or be an input
  uint32_t may_be = 0;      // the first of those before that may be the same object; 0: there is none
  uint32_t may_share = 0;   // the first storage before that may be the same one; 0: there is none
  bool is_changed = false;  // of an attribute: it is not what it was when the graph began
};

// A call that changes something in place, with those that were given or made it before, each once: autograd may have kept it
// for them, and then refuses to differentiate.
struct ChangeInPlace {
  Hash128 call;
  std::vector<Hash128> kept_by;  // sorted

  friend auto operator<=>(const ChangeInPlace&, const ChangeInPlace&) = default;
};

// How a run ends.
struct ExecutionEnd {
  std::vector<NamedNode> nodes;  // calls, in schedule order
  size_t num_inputs = 0;
  Hash128 output_structure;
  std::vector<EndValue> outputs, inputs, attributes;
  Hash128 generator, world, mode;
  std::vector<std::pair<Hash128, std::vector<Hash128>>> collectives;  // by group: calls in the order of first issue
  std::vector<std::pair<Hash128, std::vector<Hash128>>>
      messages;  // by group: sends and receives, which nobody may leave out
  std::vector<std::pair<Hash128, std::vector<Hash128>>> issued;  // the same with each time that an equal one is issued
  std::vector<Hash128> draws;                                    // by name, in order, where these count
  std::vector<Hash128> assertions, waits, pending;               // sorted, each once
  std::vector<ChangeInPlace> changes;                            // sorted; where autograd may run through the graph
  std::vector<RefusedClaim> refused;
  size_t recorded_views = 0, storage_id_views = 0;  // views that no rule tells of: see ViewFact::Source

  // One name for all of it.
  Hash128 key() const;
};

// What a run is given.
struct ExecutionInput {
  const Graph& graph;
  ModuleKeys& keys;
  CallRules& rules;
  EffectMap& effects;
  Axioms& axioms;
  const HashMap<StringId, Hash128>& subgraphs;  // keys of the graphs that nodes run
  bool is_differentiated = false;               // `detach` and gradient modes count
  bool is_called = false;   // by nodes of other graphs: known by what it is given and computes, not by a name
  bool names_calls = true;  // ExecutionEnd::nodes is wanted: of graphs that run on their own
  const std::vector<Claim>* claims = nullptr;  // those of this graph count
  // Of the graph of a step: what its inputs are called, in schedule order. Otherwise inputs go by their place.
  const std::vector<StringId>* input_names = nullptr;
};

// Runs the graph. O(nodes + arguments + tensors), expected.
ExecutionEnd execute(const ExecutionInput& input);

}  // namespace fxopt
