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

// The names of all records of one kind.
class NameSet {
 public:
  explicit NameSet(std::string_view kind) : kind_(kind) {}

  // Returns false if the set already has the name.
  bool insert(StringId name);
  bool contains(StringId name) const { return has_.contains(name); }
  bool empty() const { return names_.empty(); }
  std::string_view kind() const { return kind_; }  // "process group"
  const std::vector<StringId>& names() const { return names_; }

 private:
  std::string_view kind_;
  HashSet<StringId> has_;  // one set per graph, so smaller than an array over all strings
  std::vector<StringId> names_;
};

// Counts that bound positions.
struct GraphShape {
  int64_t placeholders = 0;
  int64_t leaves = 0;  // leaves in the output node's arguments
};
GraphShape shape_of(const Graph& graph);

// State shared by all checks of one run: the diagnostics and the declarations of the module's
// records.
class VerifyContext {
 public:
  VerifyContext(const Module& checked, size_t max_diagnostics);

  void add(ErrorCode code, const Place& place, std::string message, std::string hint = std::string()) {
    report.add(code, place, std::move(message), std::move(hint));
  }
  std::string_view text(StringId id) const { return module.text(id); }
  std::string quoted_name(StringId id) const { return quoted(text(id)); }
  bool is_blank(StringId id) const { return text(id).empty(); }

  // Checks that `name` is among `names`. An empty `names` accepts every name. `place()` is called
  // only for a diagnostic.
  template <class MakePlace>
  void check_reference(const NameSet& names, StringId name, MakePlace&& place) {
    if (!names.empty() && !names.contains(name)) report_unknown(names, name, place());
  }
  // Returns the graph with that name. If none exists, reports a diagnostic and returns an invalid
  // id.
  template <class MakePlace>
  GraphId check_graph_reference(StringId name, MakePlace&& place) {
    const GraphId found = module.find_graph(name);
    if (!found.is_valid()) report_unknown_graph(name, place());
    return found;
  }
  // Reports symbols of `expr` that the module does not declare, each once. O(subexpressions not
  // visited before).
  template <class MakePlace>
  void check_expression(ExprId expr, MakePlace&& place) {
    if (expr.is_valid() && !visited_exprs_[expr]) visit_expression(expr, place());
  }
  template <class MakePlace>
  void check_integer(const Integer& integer, MakePlace&& place) {
    check_expression(integer.expr, place);
  }

  // verify_values.cpp: checks a value and everything in it. `base` is its place, `label` the field.
  void check_value(const Pool& pool, ValueId root, std::string_view label, const Place& base);
  void check_verdict(const TagVerdict& verdict, const Place& place);
  // 1 + index in `schemas` of the file's schema for a target; 0 if the file has none.
  uint32_t schema_index(StringId target) const { return schema_indices[target]; }
  size_t group_size(StringId uid) const { return group_sizes[uid]; }
  // Returns false if an earlier node has the uid.
  bool take_uid(uint64_t uid);

  const Module& module;
  Report report;
  NameSet groups{"process group"};
  NameSet meshes{"device mesh"};
  NameSet slots{"rng slot"};
  NameSet streams{"stream"};
  NameSet constants{"constant"};
  NameSet symbols{"symbol"};
  IdMap<StringId, size_t> group_sizes;       // uid -> number of ranks
  IdMap<StringId, uint32_t> schema_indices;  // target -> 1 + index in `schemas`
  std::vector<Schema> schemas;               // from the file
  std::vector<GraphShape> shapes;            // by graph
  IdMap<RegionId, bool> visited_regions;
  std::vector<std::pair<GraphId, GraphId>> graph_edges;  // a graph and a graph that it may run

 private:
  void report_unknown(const NameSet& names, StringId name, const Place& place);
  void report_unknown_graph(StringId name, const Place& place);
  void visit_expression(ExprId expr, const Place& place);
  // Defined and called only in verify_values.cpp. `place()` is called only for a diagnostic.
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
  IdMap<StringId, bool> undeclared_;  // already reported
  std::vector<bool> uids_;            // taken; covers uids below its size
  std::unordered_set<uint64_t> sparse_uids_;
};

// verify_module.cpp: checks the module's records and fills in their declarations.
void check_records(VerifyContext& context);
// verify_module.cpp: reports graphs that run themselves, by `graph_edges`.
void check_graph_recursion(VerifyContext& context);

// Checks one graph and its nodes.
class GraphVerifier {
 public:
  GraphVerifier(VerifyContext& context, GraphId id);
  void run();

 private:
  Place at(NodeId node, std::string field = std::string()) const { return Place{&graph_, node, std::move(field)}; }
  std::string quoted_node(NodeId id) const { return quoted(graph_.name_of(id)); }
  // True for an edge to a node id of this graph. check_edge() reports all others.
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
  void check_edge(NodeId id);  // the current argument of args_
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
  IdMap<NodeId, bool> seen_;        // already visited in the schedule
  std::vector<NodeId> edge_users_;  // by ArgIndex: the user of this edge, from the use-lists
  // By node: the pending result that its value still waits for. This is the collective itself, or
  // the getitem that takes one of its results.
  IdMap<NodeId, NodeId> unawaited_;
  IdMap<NodeId, bool> awaited_;  // pending results that an earlier wait has completed
  IdMap<NodeId, bool> completes_later_;
  NameSet attributes_{"attribute"};
  std::vector<StringId> keywords_;
  std::vector<bool> given_;  // by argument of the current call's schema
  DictKeys dict_keys_;
  size_t num_edges_ = 0;         // from arguments
  size_t num_listed_edges_ = 0;  // from use-lists
  size_t num_outputs_ = 0;
  bool met_call_ = false;
};

}  // namespace fxopt
