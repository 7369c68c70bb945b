#include "passes/reduce/details.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/text.h"
#include "ir/io/io.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

// Resets `field` to its empty value; false if it was empty.
template <class T>
bool clear(T& field) {
  if (field == T()) return false;
  field = T();
  return true;
}

template <class T>
bool clear(std::vector<T>& field) {
  if (field.empty()) return false;
  field.clear();
  return true;
}

template <class T>
bool clear(std::optional<T>& field) {
  if (!field.has_value()) return false;
  field.reset();
  return true;
}

bool clear(ArgRange& field) {
  if (field.count == 0) return false;
  field = ArgRange();
  return true;
}

template <class... Fields>
bool clear_all(Fields&... fields) {
  return (static_cast<int>(clear(fields)) | ...) != 0;
}

template <auto... kFields>
bool drop(Graph& graph, NodeId node) {
  return clear_all(graph[node].*kFields...);
}

bool drop_sequence_number(Graph& graph, NodeId node) {
  graph[node].seq_nr = 0;
  return clear(graph[node].has_seq_nr);
}

// Drops fields of the rare part of a node.
template <auto... kFields>
bool drop_extra(Graph& graph, NodeId node) {
  if (graph.extra(node) == nullptr) return false;
  NodeExtra& extra = graph.mutable_extra(node);
  return clear_all(extra.*kFields...);
}

template <class Edit>
bool edit_tensors(Graph& graph, NodeId node, const Edit& edit) {
  bool has_changed = false;
  for_each_tensor(graph, graph[node].value, [&](ValueId id, const Tensor&) {
    has_changed = edit(graph.pool().tensor(graph.pool().value(id))) || has_changed;
  });
  return has_changed;
}

bool drop_storages(Graph& graph, NodeId node) {
  return edit_tensors(graph, node, [](Tensor& tensor) { return clear(tensor.storage); });
}

bool drop_subclass(Graph& graph, NodeId node) {
  return edit_tensors(graph, node, [](Tensor& tensor) {
    return clear_all(tensor.subclass, tensor.mesh, tensor.placements, tensor.requires_grad, tensor.pinned);
  });
}

constexpr std::array kNodeDetails = {
    NodeDetail{"source locations", drop<&Node::source>},
    NodeDetail{"unknown metadata", drop<&Node::meta>},
    NodeDetail{"sequence numbers", drop_sequence_number},
    NodeDetail{"history", drop_extra<&NodeExtra::verdict, &NodeExtra::origins, &NodeExtra::remarks>},
    NodeDetail{"unknown fields", drop_extra<&NodeExtra::unknown>},
    NodeDetail{"capture", drop_extra<&NodeExtra::capture>},
    NodeDetail{"buckets", drop_extra<&NodeExtra::bucket>},
    NodeDetail{"streams", drop_extra<&NodeExtra::stream, &NodeExtra::event_record, &NodeExtra::event_wait>},
    NodeDetail{"rng slots", drop_extra<&NodeExtra::rng>},
    NodeDetail{"roles of inputs", drop_extra<&NodeExtra::input>},
    NodeDetail{"control dependencies", drop_extra<&NodeExtra::control>},
    NodeDetail{"tags", drop<&Node::tag>},
    NodeDetail{"regions", drop<&Node::region>},
    NodeDetail{"module paths", drop<&Node::module_path, &Node::module_path_source>},
    NodeDetail{"phases", drop<&Node::phase, &Node::phase_markers>},
    NodeDetail{"subclasses of tensors", drop_subclass},
    NodeDetail{"storages", drop_storages},
};

template <auto... kFields>
bool drop_of_module(Module& module) {
  return clear_all(module.*kFields...);
}

template <auto... kFields>
bool drop_of_graphs(Module& module) {
  bool has_changed = false;
  for (const GraphId id : module.graphs()) has_changed = clear_all(module.graph(id).*kFields...) || has_changed;
  return has_changed;
}

constexpr std::array kModuleDetails = {
    ModuleDetail{"notes of the module",
                 drop_of_module<&Module::name, &Module::producer, &Module::meta, &Module::unknown, &Module::profile,
                                &Module::memory_plan, &Module::certificate>},
    ModuleDetail{"invocations", drop_of_module<&Module::invocations>},
    ModuleDetail{"assertions", drop_of_module<&Module::assertions>},
    ModuleDetail{"erased nodes", drop_of_module<&Module::erased>},
    ModuleDetail{"rank", drop_of_module<&Module::rank>},
    ModuleDetail{"notes of graphs",
                 drop_of_graphs<&Graph::in_spec, &Graph::out_spec, &Graph::class_name, &Graph::meta, &Graph::unknown>},
    ModuleDetail{"layouts of subclasses", drop_of_graphs<&Graph::subclasses>},
    ModuleDetail{"roles of outputs", drop_of_graphs<&Graph::outputs>},
    ModuleDetail{"numbers of forward outputs", drop_of_graphs<&Graph::num_forward_outputs>},
    ModuleDetail{"kinds of graphs", drop_of_graphs<&Graph::kind>},
    ModuleDetail{"numbers of nodes", renumber},
};

// Calls visit(kind, list, member that holds the name) for each list of named records.
template <class ModuleType, class Visit>
void visit_lists(ModuleType& module, const Visit& visit) {
  visit("symbol", module.symbols, &Symbol::name);
  visit("group", module.groups, &ProcessGroup::uid);
  visit("mesh", module.meshes, &DeviceMesh::name);
  visit("op schema", module.op_schemas, &OpSchemaRecord::target);
  visit("constant", module.constants, &Constant::name);
  visit("rng slot", module.rng_slots, &RngSlot::name);
  visit("stream", module.streams, &Stream::name);
  for (const GraphId id : module.graphs()) {
    auto& graph = module.graph(id);
    visit("attribute of " + std::string(module.text(graph.name())), graph.attributes, &Attribute::path);
  }
}

std::string record_name(const Module& module, std::string_view kind, StringId name) {
  return std::string(kind) + " " + std::string(module.text(name));
}

constexpr std::string_view kGraph = "graph";
constexpr std::string_view kStorageLine = "storage {";

// The id of a storage in the line that describes it.
uint64_t storage_id_of(std::string_view line) {
  constexpr std::string_view kId = "storage {id=";
  if (!line.starts_with(kId)) return 0;
  const std::string_view rest = line.substr(kId.size());
  return static_cast<uint64_t>(parse_int64(rest.substr(0, rest.find_first_of(",}"))).value_or(0));
}

// The ids of the storages that tensors refer to: "$3" in "f32[4]@cpu$3". If a string constant looks
// like an id, the storage is kept needlessly, which does no harm.
std::set<uint64_t> named_storages(std::string_view text) {
  std::set<uint64_t> named;
  for (size_t at = text.find('$'); at != std::string_view::npos; at = text.find('$', at + 1)) {
    const std::string_view rest = text.substr(at + 1);
    const size_t length = std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (const std::optional<int64_t> id = parse_int64(rest.substr(0, length))) named.insert(static_cast<uint64_t>(*id));
  }
  return named;
}

}  // namespace

std::span<const NodeDetail> node_details() { return kNodeDetails; }

std::span<const ModuleDetail> module_details() { return kModuleDetails; }

std::vector<std::string> named_records(const Module& module) {
  std::vector<std::string> records;
  for (const GraphId id : module.graphs()) {
    if (id != module.main().id()) records.push_back(record_name(module, kGraph, module.graph(id).name()));
  }
  visit_lists(module, [&](std::string_view kind, const auto& list, auto name) {
    for (const auto& record : list) records.push_back(record_name(module, kind, record.*name));
  });
  return records;
}

bool remove_records(Module& module, const std::set<std::string>& records) {
  bool has_changed = false;
  visit_lists(module, [&](std::string_view kind, auto& list, auto name) {
    const size_t before = list.size();
    std::erase_if(list, [&](const auto& r) { return records.contains(record_name(module, kind, r.*name)); });
    has_changed = has_changed || list.size() != before;
  });
  std::vector<GraphId> graphs;
  for (const GraphId id : module.graphs()) {
    if (id == module.main().id()) continue;
    if (records.contains(record_name(module, kGraph, module.graph(id).name()))) graphs.push_back(id);
  }
  module.remove_graphs(graphs);
  module.resolve_targets();
  return has_changed || !graphs.empty();
}

bool renumber(Module& module) {
  const uint64_t before = module.next_uid;
  bool has_changed = !module.name_counters.empty();
  module.name_counters.clear();
  uint64_t next = 0;
  for (const GraphId id : module.graphs()) {
    Graph& graph = module.graph(id);
    for (const NodeId node : graph.nodes()) {
      has_changed = has_changed || graph[node].uid != next;
      graph[node].uid = next++;
    }
  }
  module.next_uid = next;
  return has_changed || before != next;
}

// A module cannot remove storages. Therefore unused storages are removed from the text, where each
// storage has its own line.
std::string print_without_unused_storages(const Module& module) {
  const std::string text = print_text(module);
  const std::set<uint64_t> named = named_storages(text);
  std::string out;
  out.reserve(text.size());
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (!line.starts_with(kStorageLine) || named.contains(storage_id_of(line))) out += line;
    begin = end;
  }
  return out;
}

}  // namespace fxopt
