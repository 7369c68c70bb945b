#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/hash_table.h"
#include "ir/check/report.h"
#include "ir/graph/module.h"
#include "ir/values/values.h"

// The parts of verify(). The head of verify.cpp lists the invariants.

namespace fxopt {

// The names of all entries of one kind that the module lists, such as all process groups.
class NameSet {
 public:
  explicit NameSet(std::string_view kind) : kind_(kind) {}

  // Returns false if the set already has the name.
  bool insert(StringId name);
  bool contains(StringId name) const { return has_.contains(name); }
  bool empty() const { return names_.empty(); }
  std::string_view kind() const { return kind_; }  // the kind in diagnostics: "process group"
  const std::vector<StringId>& names() const { return names_; }

 private:
  std::string_view kind_;
  // The names in use. An array with one entry for each string of the module would take more memory
  // than this hash set. The memory matters because each graph has its own NameSet for its
  // attributes (GraphVerifier::attributes_).
  HashSet<StringId> has_;
  std::vector<StringId> names_;
};

// The numbers of inputs and outputs of a graph. Input and output positions that the file records
// must be below these numbers.
struct GraphShape {
  int64_t placeholders = 0;
  int64_t leaves = 0;  // number of leaves in the output node's arguments
};
GraphShape shape_of(const Graph& graph);

// The state that all checks of one verify() call share: the diagnostics, and the names that the
// module declares (process groups, symbols and so on).
class VerifyContext {
 public:
  VerifyContext(const Module& checked, size_t max_diagnostics);

  void add(ErrorCode code, const Place& place, std::string message, std::string hint = std::string()) {
    report.add(code, place, std::move(message), std::move(hint));
  }
  std::string_view text(StringId id) const { return module.text(id); }
  std::string quoted_name(StringId id) const { return quoted(text(id)); }
  bool is_blank(StringId id) const { return text(id).empty(); }

  // Checks that `name` is one of `names`. If `names` is empty, every name is valid. `place()` is
  // called only if there is a diagnostic.
  template <class MakePlace>
  void check_reference(const NameSet& names, StringId name, MakePlace&& place) {
    if (!names.empty() && !names.contains(name)) report_unknown(names, name, place());
  }
  // Returns the graph with that name. If no such graph exists, reports a diagnostic and returns an
  // invalid id.
  template <class MakePlace>
  GraphId check_graph_reference(StringId name, MakePlace&& place) {
    const GraphId found = module.find_graph(name);
    if (!found.is_valid()) report_unknown_graph(name, place());
    return found;
  }
  // Reports each symbol of `expr` that the module does not declare. Each symbol is reported once.
  // O(subexpressions not visited before).
  template <class MakePlace>
  void check_expression(ExprId expr, MakePlace&& place) {
    if (expr.is_valid() && !visited_exprs_[expr]) visit_expression(expr, place());
  }
  template <class MakePlace>
  void check_integer(const Integer& integer, MakePlace&& place) {
    check_expression(integer.expr, place);
  }

  // Checks a value and all nested values. `base` is the value's place, and `label` names the field
  // that contains the value. Defined in verify_values.cpp.
  void check_value(const Pool& pool, ValueId root, std::string_view label, const Place& base);
  void check_verdict(const TagVerdict& verdict, const Place& place);
  // Returns 1 + the index of the target's schema in `schemas`. Returns 0 if the file has no schema
  // for the target.
  uint32_t schema_index(StringId target) const { return schema_indices[target]; }
  size_t group_size(StringId uid) const { return group_sizes[uid]; }
  // Records a uid. Returns false if an earlier node has the same uid.
  bool take_uid(uint64_t uid);

  const Module& module;
  Report report;
  NameSet groups{"process group"};
  NameSet meshes{"device mesh"};
  NameSet slots{"rng slot"};
  NameSet streams{"stream"};
  NameSet constants{"constant"};
  NameSet symbols{"symbol"};
  IdMap<StringId, size_t> group_sizes;       // number of ranks, by uid of the group
  IdMap<StringId, uint32_t> schema_indices;  // 1 + index in `schemas`, by target
  std::vector<Schema> schemas;               // schemas in the file
  std::vector<GraphShape> shapes;            // shapes by graph
  IdMap<RegionId, bool> visited_regions;
  // Each pair contains a graph, and a second graph that a node of the first graph may run.
  std::vector<std::pair<GraphId, GraphId>> graph_edges;

 private:
  void report_unknown(const NameSet& names, StringId name, const Place& place);
  void report_unknown_graph(StringId name, const Place& place);
  void visit_expression(ExprId expr, const Place& place);
  // These functions are defined and called only in verify_values.cpp. `place()` is called only if
  // there is a diagnostic.
  template <class MakePlace>
  void check_tensor(const Tensor& tensor, const MakePlace& place);
  template <class MakePlace>
  void check_dims(const Tensor& tensor, const MakePlace& place);
  template <class MakePlace>
  void check_bits(const Tensor& tensor, const MakePlace& place);
  template <class MakePlace>
  void check_storage_fit(const Tensor& tensor, const MakePlace& place);

  IdMap<ExprId, bool> visited_exprs_;
  std::vector<ExprId> pending_exprs_;
  IdMap<StringId, bool> undeclared_;  // undeclared names that were already reported
  std::vector<bool> uids_;            // for each uid below the size of this vector: whether it is in use
  std::unordered_set<uint64_t> sparse_uids_;
};

// Checks the module's entries outside of graphs (storages, symbols, process groups and so on), and
// stores the names that they declare in the context. Defined in verify_module.cpp.
void check_records(VerifyContext& context);
// Reports each graph that calls itself, directly or through other graphs. The calls are in
// `graph_edges`. Defined in verify_module.cpp.
void check_graph_recursion(VerifyContext& context);

// Checks one graph and its nodes.
class GraphVerifier {
 public:
  GraphVerifier(VerifyContext& context, GraphId id);
  void run();

 private:
  Place at(NodeId node, std::string field = std::string()) const { return Place{&graph_, node, std::move(field)}; }
  std::string quoted_node(NodeId id) const { return quoted(graph_.name_of(id)); }
  // Whether the argument is an edge to a node id of this graph. check_edge() reports all other
  // edges.
  bool is_edge(const Arg& arg) const { return arg.is(ArgKind::kNode) && arg.as_node().index() < graph_.num_ids(); }
  void structure(const Place& place, std::string message, std::string hint = std::string()) {
    context_.add(ErrorCode::kVerifyStructure, place, std::move(message), std::move(hint));
  }

  // verify.cpp
  void check_record();
  void check_subclasses();
  void check_attributes();
  void check_output_specs();
  void index_uses();
  void check_node(NodeId id);
  void check_kind(NodeId id);
  void check_output(NodeId id);
  void check_get_attr(NodeId id);
  void check_identity(NodeId id);
  void check_args(NodeId id, std::string_view label, ArgRange range, ArgWalk::Keys keys);
  void check_edge(NodeId id);  // checks the current argument of args_
  void check_keywords(NodeId id);
  void check_extra(NodeId id, const NodeExtra& extra);
  void check_control(NodeId id, const NodeExtra& extra);
  void check_input_spec(NodeId id, const InputSpec& spec);
  void check_phase(NodeId id);

  // verify_values.cpp
  void check_getitem(NodeId id);
  void check_element(NodeId id, const Value& element);

  // verify_calls.cpp
  void check_schema(NodeId id);
  void check_collective(NodeId id);
  void check_readers(NodeId id, const Op& op);
  NodeId collective_of(NodeId pending) const;
  void check_wait(NodeId id);
  void check_group(NodeId id, const Schema& schema);
  const Schema* schema_of(NodeId id) const;

  VerifyContext& context_;
  const Module& module_;
  const Graph& graph_;
  GraphId id_;
  GraphShape shape_;
  ArgWalk args_;
  IdMap<NodeId, bool> seen_;  // nodes that the walk over the schedule has visited
  // The index is the ArgIndex of an edge (an argument that refers to a node). The entry is the node
  // that uses the edge according to the use-lists. The entry is invalid if no use-list contains the
  // edge.
  std::vector<NodeId> edge_users_;
  // A result in this map is the node of a collective that needs a wait, or a getitem from the
  // collective's result. Maps a node to a result if the node's value may be this result, or a view
  // of this result. Several nodes may map to one result. A wait therefore removes no entries from
  // this map, but sets the result's entry in awaited_.
  IdMap<NodeId, NodeId> unawaited_;
  // The key is a result in unawaited_. True if a wait for this result precedes the current node of
  // the walk over the schedule.
  IdMap<NodeId, bool> awaited_;
  IdMap<NodeId, bool> completes_later_;
  NameSet attributes_{"attribute"};
  std::vector<StringId> keywords_;
  std::vector<bool> given_;  // which arguments of the current call's schema are given
  DictKeys dict_keys_;
  // num_edges_ and num_listed_edges_ must be equal.
  size_t num_edges_ = 0;         // number of edges: arguments that refer to a node of the graph
  size_t num_listed_edges_ = 0;  // number of entries in the use-lists of all nodes
  size_t num_outputs_ = 0;
  bool met_call_ = false;
};

}  // namespace fxopt
