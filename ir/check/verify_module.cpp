// Checks the module's entries outside of graphs: storages, symbols, process groups, meshes,
// schemas, constants, invocations (the graphs that the training step runs).

#include <algorithm>
#include <limits>
#include <optional>

#include "ir/check/verifier.h"

namespace fxopt {
namespace {

constexpr size_t kMaxCandidates = 64;  // limit on names compared for a suggestion

std::string item(std::string_view list, size_t index) { return std::string(list) + "[" + std::to_string(index) + "]"; }

Place record(std::string field) { return Place{nullptr, NodeId(), std::move(field)}; }

// Returns the smallest value that occurs twice.
std::optional<int64_t> repeated(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  const std::vector<int64_t>::const_iterator found = std::adjacent_find(values.begin(), values.end());
  return found == values.end() ? std::nullopt : std::optional<int64_t>(*found);
}

// Returns the target of a schema, for example "aten.mm.default" for aten::mm.
std::string target_of(const Schema& schema) {
  std::string name = schema.name;
  const size_t colons = name.find("::");
  if (colons != std::string::npos) name.replace(colons, 2, ".");
  return name + "." + (schema.overload.empty() ? "default" : schema.overload);
}

class RecordChecks {
 public:
  explicit RecordChecks(VerifyContext& context) : context_(context), module_(context.module) {}

  void run() {
    declare();
    check_graph_names();
    check_storages();
    check_symbols();
    check_groups();
    check_meshes();
    check_op_schemas();
    check_constants();
    check_invocations();
    check_erased();
  }

 private:
  void add(ErrorCode code, std::string field, std::string message, std::string hint = std::string()) {
    context_.add(code, record(std::move(field)), std::move(message), std::move(hint));
  }
  std::string quoted_name(StringId id) const { return context_.quoted_name(id); }

  void declare();
  template <class Record>
  void declare_all(NameSet& names, std::string_view list, const std::vector<Record>& records, StringId Record::*name);
  void check_graph_names();
  void check_storages();
  void check_symbols();
  void check_groups();
  void check_ranks(const std::vector<int64_t>& ranks, std::string_view owner, const std::string& field);
  void check_meshes();
  void check_mesh_shape(const DeviceMesh& mesh, const std::string& field);
  void check_op_schemas();
  void check_op_schema(const OpSchemaRecord& schema_record, const Schema& schema, const std::string& field);
  void check_constants();
  void check_invocations();
  void check_binding(size_t invocation, const Binding& binding, const std::string& field);
  void check_erased();

  VerifyContext& context_;
  const Module& module_;
};

template <class Record>
void RecordChecks::declare_all(NameSet& names, std::string_view list, const std::vector<Record>& records,
                               StringId Record::*name) {
  for (size_t i = 0; i < records.size(); ++i) {
    const StringId id = records[i].*name;
    const bool is_new = names.insert(id);
    if (context_.is_blank(id)) {
      add(ErrorCode::kVerifyReference, item(list, i), std::string(names.kind()) + " without a name");
    } else if (!is_new) {
      add(ErrorCode::kVerifyReference, item(list, i),
          "two records of " + std::string(names.kind()) + " " + quoted_name(id));
    }
  }
}

// Declares names first, because records refer to each other in any order.
void RecordChecks::declare() {
  context_.shapes.resize(module_.num_graph_ids());
  for (const GraphId id : module_.graphs()) context_.shapes[id.index()] = shape_of(module_.graph(id));
  declare_all(context_.symbols, "symbols", module_.symbols, &Symbol::name);
  declare_all(context_.groups, "groups", module_.groups, &ProcessGroup::uid);
  declare_all(context_.meshes, "meshes", module_.meshes, &DeviceMesh::name);
  declare_all(context_.constants, "constants", module_.constants, &Constant::name);
  declare_all(context_.slots, "rng_slots", module_.rng_slots, &RngSlot::name);
  declare_all(context_.streams, "streams", module_.streams, &Stream::name);
}

void RecordChecks::check_graph_names() {
  if (module_.num_graphs() == 0) add(ErrorCode::kVerifyStructure, "graphs", "module without a graph");
  for (size_t i = 0; i < module_.num_graphs(); ++i) {
    if (!context_.is_blank(module_.graph(module_.graphs()[i]).name())) continue;
    add(ErrorCode::kVerifyStructure, item("graphs", i), "graph without a name");
  }
}

void RecordChecks::check_storages() {
  for (size_t i = 0; i < module_.num_storages(); ++i) {
    const StorageRecord& storage = module_.storage(StorageId(i));
    if (storage.id >= module_.next_storage) {
      add(ErrorCode::kVerifyStructure, item("storages", i),
          "storage " + std::to_string(storage.id) + " is not below the counter next_storage, which is " +
              std::to_string(module_.next_storage));
    }
    if (storage.bytes.value.value_or(0) < 0) {
      add(ErrorCode::kVerifyValue, item("storages", i),
          "storage " + std::to_string(storage.id) + " has " + std::to_string(*storage.bytes.value) + " bytes");
    }
    context_.check_integer(storage.bytes, [&] { return record(item("storages", i)); });
  }
}

void RecordChecks::check_symbols() {
  for (size_t i = 0; i < module_.symbols.size(); ++i) {
    const Symbol& symbol = module_.symbols[i];
    if (symbol.min.has_value() && symbol.max.has_value() && *symbol.min > *symbol.max) {
      add(ErrorCode::kVerifyValue, item("symbols", i),
          "symbol " + quoted_name(symbol.name) + " has bounds from " + std::to_string(*symbol.min) + " to " +
              std::to_string(*symbol.max));
    }
    if (!context_.is_blank(symbol.graph)) {
      context_.check_graph_reference(symbol.graph, [&] { return record(item("symbols", i) + ".graph"); });
    }
  }
  for (size_t i = 0; i < module_.assertions.size(); ++i) {
    context_.check_expression(module_.assertions[i].condition.id, [&] { return record(item("assertions", i)); });
  }
}

void RecordChecks::check_ranks(const std::vector<int64_t>& ranks, std::string_view owner, const std::string& field) {
  const std::optional<int64_t> twice = repeated(ranks);
  if (twice.has_value()) {
    add(ErrorCode::kVerifyCollective, field, std::string(owner) + " has rank " + std::to_string(*twice) + " twice");
  }
  constexpr int64_t kUnknownWorld = std::numeric_limits<int64_t>::max();
  const int64_t world = module_.rank.has_value() ? module_.rank->world_size.value_or(kUnknownWorld) : kUnknownWorld;
  const std::vector<int64_t>::const_iterator outside =
      std::find_if(ranks.begin(), ranks.end(), [world](int64_t rank) { return rank < 0 || rank >= world; });
  if (outside == ranks.end()) return;
  add(ErrorCode::kVerifyCollective, field,
      std::string(owner) + " has rank " + std::to_string(*outside) +
          (*outside < 0 ? "" : ", but the job's ranks are 0 to " + std::to_string(world - 1)));
}

void RecordChecks::check_groups() {
  if (module_.rank.has_value()) {
    const std::vector<int64_t> own(module_.rank->rank.has_value() ? 1 : 0, module_.rank->rank.value_or(0));
    check_ranks(own, "the traced process", "rank");
  }
  for (size_t i = 0; i < module_.groups.size(); ++i) {
    const ProcessGroup& group = module_.groups[i];
    check_ranks(group.ranks, "group " + quoted_name(group.uid), item("groups", i));
    context_.group_sizes[group.uid.is_valid() ? group.uid : StringId(0)] = group.ranks.size();
    if (!context_.is_blank(group.mesh)) {
      context_.check_reference(context_.meshes, group.mesh, [&] { return record(item("groups", i) + ".mesh"); });
    }
  }
}

void RecordChecks::check_meshes() {
  for (size_t i = 0; i < module_.meshes.size(); ++i) {
    const DeviceMesh& mesh = module_.meshes[i];
    const std::string field = item("meshes", i);
    check_ranks(mesh.ranks, "mesh " + quoted_name(mesh.name), field);
    check_mesh_shape(mesh, field);
    for (const StringId group : mesh.groups) {
      if (context_.is_blank(group)) continue;
      context_.check_reference(context_.groups, group, [&] { return record(field + ".groups"); });
    }
  }
}

void RecordChecks::check_mesh_shape(const DeviceMesh& mesh, const std::string& field) {
  const std::string name = "mesh " + quoted_name(mesh.name);
  int64_t count = 1;
  bool is_sane = true;
  for (const int64_t size : mesh.shape) is_sane = is_sane && size > 0 && !__builtin_mul_overflow(count, size, &count);
  if (!is_sane || (!mesh.ranks.empty() && mesh.ranks.size() != static_cast<size_t>(count))) {
    add(ErrorCode::kVerifyCollective, field,
        name + " has " + std::to_string(mesh.ranks.size()) + " ranks, which do not fill its shape");
  }
  const size_t dims = mesh.shape.size();
  const auto fits = [&](size_t items) { return items == 0 || items == dims; };
  if (!fits(mesh.dim_names.size()) || !fits(mesh.groups.size()) || !fits(mesh.coordinate.size())) {
    add(ErrorCode::kVerifyCollective, field,
        name + " has a list of names, groups or coordinates without exactly one entry for each dimension (" +
            std::to_string(dims) + ")");
    return;
  }
  for (size_t i = 0; i < mesh.coordinate.size(); ++i) {
    if (mesh.coordinate[i] >= 0 && mesh.coordinate[i] < mesh.shape[i]) continue;
    add(ErrorCode::kVerifyCollective, field,
        name + " has coordinate " + std::to_string(mesh.coordinate[i]) + " in a dimension of size " +
            std::to_string(mesh.shape[i]));
  }
}

void RecordChecks::check_op_schemas() {
  for (size_t i = 0; i < module_.op_schemas.size(); ++i) {
    const OpSchemaRecord& schema_record = module_.op_schemas[i];
    const std::string field = item("op_schemas", i);
    if (context_.is_blank(schema_record.target)) {
      add(ErrorCode::kVerifyReference, field, "op schema without a target");
      continue;
    }
    uint32_t& index = context_.schema_indices[schema_record.target];
    if (index != 0) {
      add(ErrorCode::kVerifyReference, field, "two schemas of " + quoted_name(schema_record.target));
      continue;
    }
    Result<Schema> schema = parse_schema(context_.text(schema_record.schema));
    if (!schema.ok()) {
      add(ErrorCode::kVerifyReference, field + ".schema",
          "schema of " + quoted_name(schema_record.target) + " cannot be parsed: " + schema.error().message);
      continue;
    }
    check_op_schema(schema_record, *schema, field + ".schema");
    context_.schemas.push_back(std::move(*schema));
    index = static_cast<uint32_t>(context_.schemas.size());
  }
}

// The file's schema and the built-in op may differ in trailing arguments with defaults, because
// PyTorch versions add these. After any other difference, the positions in Op::writes would be
// wrong for the file's schema.
void RecordChecks::check_op_schema(const OpSchemaRecord& schema_record, const Schema& schema,
                                   const std::string& field) {
  const std::string_view target = context_.text(schema_record.target);
  if (target_of(schema) != target) {
    add(ErrorCode::kVerifyReference, field,
        "schema of " + quoted(target_of(schema)) + " is recorded for " + quoted(target));
    return;
  }
  const Op* builtin = find_builtin_op(target);
  if (builtin == nullptr || !builtin->schema.has_value()) return;
  const std::vector<SchemaArg>& ours = builtin->schema->args;
  const std::vector<SchemaArg>& longer = ours.size() > schema.args.size() ? ours : schema.args;
  const size_t shared = std::min(ours.size(), schema.args.size());
  const bool agrees = std::all_of(longer.begin() + static_cast<std::ptrdiff_t>(shared), longer.end(),
                                  [](const SchemaArg& arg) { return arg.has_default(); });
  if (agrees) return;
  add(ErrorCode::kVerifyReference, field,
      "schema of " + quoted(target) + " has " + std::to_string(schema.args.size()) +
          " arguments, but the built-in op has " + std::to_string(ours.size()));
}

void RecordChecks::check_constants() {
  for (size_t i = 0; i < module_.constants.size(); ++i) {
    const Constant& constant = module_.constants[i];
    const std::string field = item("constants", i);
    const std::string name = "constant " + quoted_name(constant.name);
    // A constant may have neither data nor path. It then represents a fake tensor.
    if (!context_.is_blank(constant.key) && context_.is_blank(constant.path)) {
      add(ErrorCode::kVerifyReference, field, name + " has a key, but no path to the file that contains the constant");
    }
    const bool has_tensor =
        constant.tensor.is_valid() && module_.pool.value(constant.tensor).kind == ValueKind::kTensor;
    if (!has_tensor) {
      add(ErrorCode::kVerifyValue, field, name + " has no tensor");
    } else {
      context_.check_value(module_.pool, constant.tensor, field + ".tensor", record(""));
    }
  }
}

void RecordChecks::check_invocations() {
  for (size_t i = 0; i < module_.invocations.size(); ++i) {
    const Invocation& invocation = module_.invocations[i];
    const std::string field = item("invocations", i);
    const auto place = [&] { return record(field); };
    context_.check_integer(invocation.stage, place);
    context_.check_integer(invocation.microbatch, place);
    context_.check_integer(invocation.peer, place);
    context_.check_graph_reference(invocation.graph, place);
    for (size_t k = 0; k < invocation.bindings.size(); ++k) {
      check_binding(i, invocation.bindings[k], item(field + ".bindings", k));
    }
  }
}

void RecordChecks::check_binding(size_t invocation, const Binding& binding, const std::string& field) {
  const GraphId graph = module_.find_graph(module_.invocations[invocation].graph);
  if (graph.is_valid() && binding.input >= context_.shapes[graph.index()].placeholders) {
    add(ErrorCode::kVerifyReference, field,
        beyond("the binding sets input", binding.input, context_.shapes[graph.index()].placeholders, "inputs"));
  }
  if (!binding.invocation.has_value()) return;
  if (*binding.invocation >= invocation) {
    add(ErrorCode::kVerifyReference, field,
        "invocation " + std::to_string(invocation) + " can only read earlier invocations, not invocation " +
            std::to_string(*binding.invocation));
    return;
  }
  const GraphId earlier = module_.find_graph(module_.invocations[*binding.invocation].graph);
  if (earlier.is_valid() && binding.output >= context_.shapes[earlier.index()].leaves) {
    add(ErrorCode::kVerifyReference, field,
        beyond("the binding reads output", binding.output, context_.shapes[earlier.index()].leaves, "outputs"));
  }
}

void RecordChecks::check_erased() {
  for (size_t i = 0; i < module_.erased.size(); ++i) {
    const ErasedNode& erased = module_.erased[i];
    if (erased.verdict.has_value()) context_.check_verdict(*erased.verdict, record(item("erased", i) + ".verdict"));
  }
}

// Detects cycles by depth-first search. An edge to a graph on the current search path closes a
// cycle.
class RecursionSearch {
 public:
  RecursionSearch(size_t num_graphs, std::vector<std::pair<GraphId, GraphId>>& edges)
      : edges_(edges), state_(num_graphs, State::kNew), next_(num_graphs) {
    std::sort(edges_.begin(), edges_.end());
    edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
    size_t edge = 0;
    for (size_t i = 0; i < num_graphs; ++i) {
      while (edge < edges_.size() && edges_[edge].first.index() < i) ++edge;
      next_[i] = edge;
    }
  }

  // Returns the edges that close a cycle, in a fixed order.
  std::vector<std::pair<GraphId, GraphId>> run() {
    for (size_t i = 0; i < state_.size(); ++i) {
      if (state_[i] == State::kNew) visit(GraphId(i));
    }
    return std::move(closing_);
  }

 private:
  enum class State : uint8_t { kNew, kOpen, kLeft };

  void visit(GraphId root) {
    std::vector<GraphId> path{root};
    state_[root.index()] = State::kOpen;
    while (!path.empty()) {
      const GraphId at = path.back();
      size_t& edge = next_[at.index()];
      if (edge == edges_.size() || edges_[edge].first != at) {
        state_[at.index()] = State::kLeft;
        path.pop_back();
        continue;
      }
      const GraphId to = edges_[edge++].second;
      if (state_[to.index()] == State::kOpen) closing_.emplace_back(at, to);
      if (state_[to.index()] != State::kNew) continue;
      state_[to.index()] = State::kOpen;
      path.push_back(to);
    }
  }

  std::vector<std::pair<GraphId, GraphId>>& edges_;
  std::vector<State> state_;
  std::vector<size_t> next_;  // by graph: index of the first edge that was not followed yet
  std::vector<std::pair<GraphId, GraphId>> closing_;
};

}  // namespace

bool NameSet::insert(StringId name) {
  if (!name.is_valid()) name = StringId(0);
  if (!has_.insert(name).second) return false;
  names_.push_back(name);
  return true;
}

void VerifyContext::report_unknown(const NameSet& names, StringId name, const Place& place) {
  std::string hint;
  if (!report.is_full() && names.names().size() <= kMaxCandidates) {
    std::vector<std::string_view> candidates;
    for (const StringId id : names.names()) candidates.push_back(text(id));
    hint = suggestion(text(name), candidates);
  }
  add(ErrorCode::kVerifyReference, place, "no " + std::string(names.kind()) + " " + quoted_name(name), hint);
}

void VerifyContext::report_unknown_graph(StringId name, const Place& place) {
  add(ErrorCode::kVerifyReference, place, "no graph " + quoted_name(name));
}

void check_records(VerifyContext& context) { RecordChecks(context).run(); }

void check_graph_recursion(VerifyContext& context) {
  RecursionSearch search(context.module.num_graph_ids(), context.graph_edges);
  for (const std::pair<GraphId, GraphId>& edge : search.run()) {
    const Graph& from = context.module.graph(edge.first);
    const Graph& to = context.module.graph(edge.second);
    context.add(ErrorCode::kVerifyReference, Place{&from, NodeId(), ""},
                edge.first == edge.second ? "graph runs itself"
                                          : "graph runs " + context.quoted_name(to.name()) + ", which runs this graph");
  }
}

}  // namespace fxopt
