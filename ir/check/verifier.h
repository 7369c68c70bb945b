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

// The parts of verify(), which lists the invariants at the head of verify.cpp.

namespace fxopt {

// The names that one kind of record goes by.
class NameSet {
 public:
  explicit NameSet(std::string_view kind) : kind_(kind) {}

  // False when the name is already there.
  bool insert(StringId name);
  bool contains(StringId name) const { return has_.contains(name); }
  bool empty() const { return names_.empty(); }
  std::string_view kind() const { return kind_; }  // "process group"
  const std::vector<StringId>& names() const { return names_; }

 private:
  std::string_view kind_;
  HashSet<StringId> has_;  // each graph has such sets: none as large as the table of strings
  std::vector<StringId> names_;
};

// Counts that positions are held against.
struct GraphShape {
  int64_t placeholders = 0;
  int64_t leaves = 0;  // of what the output node returns
};
GraphShape shape_of(const Graph& graph);

// What all checks of one run share: the list of diagnostics and what the module's records declare.
class VerifyContext {
 public:
  VerifyContext(const Module& checked, size_t max_diagnostics);

  void add(ErrorCode code, const Place& place, std::string message, std::string hint = std::string()) {
    report.add(code, place, std::move(message), std::move(hint));
  }
  std::string_view text(StringId id) const { return module.text(id); }
  std::string quoted_name(StringId id) const { return quoted(text(id)); }
  bool is_blank(StringId id) const { return text(id).empty(); }

  // `name` is among `names`, which binds only where the module lists any. `place()` is called for a diagnostic only.
  template <class MakePlace>
  void check_reference(const NameSet& names, StringId name, MakePlace&& place) {
    if (!names.empty() && !names.contains(name)) report_unknown(names, name, place());
  }
  // The graph of that name; invalid, and a diagnostic, when there is none.
  template <class MakePlace>
  GraphId check_graph_reference(StringId name, MakePlace&& place) {
    const GraphId found = module.find_graph(name);
    if (!found.is_valid()) report_unknown_graph(name, place());
    return found;
  }
  // Symbols of `expr` that the module does not declare, each told once. O(parts not seen before).
  template <class MakePlace>
  void check_expression(ExprId expr, MakePlace&& place) {
    if (expr.is_valid() && !visited_exprs_[expr]) visit_expression(expr, place());
  }
  template <class MakePlace>
  void check_integer(const Integer& integer, MakePlace&& place) {
    check_expression(integer.expr, place);
  }

  // verify_values.cpp: a value and all it contains; `base` is where it stands, `label` the field.
  void check_value(const Pool& pool, ValueId root, std::string_view label, const Place& base);
  void check_verdict(const TagVerdict& verdict, const Place& place);
  // 1 + index in `schemas` of the schema the file carries for a target; 0 when there is none.
  uint32_t schema_index(StringId target) const { return schema_indices[target]; }
  size_t group_size(StringId uid) const { return group_sizes[uid]; }
  // False when a node met before has the uid.
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
  std::vector<Schema> schemas;               // those the file carries
  std::vector<GraphShape> shapes;            // by graph
  IdMap<RegionId, bool> visited_regions;
  std::vector<std::pair<GraphId, GraphId>> graph_edges;  // a graph and one that it may run

 private:
  void report_unknown(const NameSet& names, StringId name, const Place& place);
  void report_unknown_graph(StringId name, const Place& place);
  void visit_expression(ExprId expr, const Place& place);
  // verify_values.cpp alone has these and calls them; `place()` is called for a diagnostic only.
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
  IdMap<StringId, bool> undeclared_;  // told
  std::vector<bool> uids_;            // taken; covers uids below its size
  std::unordered_set<uint64_t> sparse_uids_;
};

// verify_module.cpp: the module's records. Fills in what they declare.
void check_records(VerifyContext& context);
// verify_module.cpp: graphs that run themselves, by `graph_edges`.
void check_graph_recursion(VerifyContext& context);

// One graph and its nodes.
class GraphVerifier {
 public:
  GraphVerifier(VerifyContext& context, GraphId id);
  void run();

 private:
  Place at(NodeId node, std::string field = std::string()) const { return Place{&graph_, node, std::move(field)}; }
  std::string quoted_node(NodeId id) const { return quoted(graph_.name_of(id)); }
  // An edge to a node of this graph: what is not is told by check_edge.
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
  IdMap<NodeId, bool> seen_;        // already met in the schedule
  std::vector<NodeId> edge_users_;  // by ArgIndex: who reads through it, as the use-lists say
  // What a node hands on must be waited for: the collective, or the getitem that takes one result of several.
  IdMap<NodeId, NodeId> unawaited_;
  IdMap<NodeId, bool> awaited_;  // of these, what a wait before the node at hand has completed
  IdMap<NodeId, bool> completes_later_;
  NameSet attributes_{"attribute"};
  std::vector<StringId> keywords_;
  std::vector<bool> given_;  // by argument of the schema at hand
  DictKeys dict_keys_;
  size_t num_edges_ = 0;         // that arguments make
  size_t num_listed_edges_ = 0;  // that use-lists hold
  size_t num_outputs_ = 0;
  bool met_call_ = false;
};

}  // namespace fxopt
