// Removes storage ids, phases and roles from every file, derives them again from the rest, and
// compares them with the file's own. Each difference is in a class with a reason
// (ir/alias/README.md and ir/step/README.md have the same tables). Each class has its exact count,
// and a difference in no class fails the test.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/alias/storages.h"
#include "ir/io/io.h"
#include "ir/step/infer_roles.h"
#include "ir/step/phases.h"
#include "tests/catch.h"
#include "tests/testdata/files.h"

namespace fxopt {
namespace {

// The records of a graph before strip().
struct Told {
  IdMap<NodeId, std::vector<StorageId>> storages;  // by tensor of the node's value, depth first
  PhaseMap phases;
  IdMap<NodeId, bool> is_marked;
  IdMap<NodeId, InputRole> inputs;
  bool has_inputs = false;
  std::vector<OutputSpec> outputs;
};

void take_storages(Graph& graph, ValueId id, std::vector<StorageId>& out) {
  if (!id.is_valid()) return;
  const Value value = graph.pool().value(id);
  if (value.kind == ValueKind::kTensor) {
    out.push_back(graph.pool().tensor(value).storage);
    graph.pool().tensor(value).storage = StorageId();
  } else if (value.kind == ValueKind::kTuple || value.kind == ValueKind::kList || value.kind == ValueKind::kDict) {
    for (uint32_t i = 0; i < value.count; ++i) take_storages(graph, ValueId(value.first + i), out);
  }
}

Told strip(Graph& graph) {
  Told told;
  told.phases = analyze_phases(graph);
  told.outputs.swap(graph.outputs);
  for (const NodeId id : graph.nodes()) {
    Node& node = graph[id];
    take_storages(graph, node.value, told.storages[id]);
    told.is_marked[id] = node.phase != Phase::kUnspecified || node.phase_markers != 0;
    node.phase = Phase::kUnspecified;
    node.phase_markers = 0;
    if (graph.extra(id) == nullptr || !graph.extra(id)->input.has_value()) continue;
    told.inputs[id] = graph.extra(id)->input->role;
    told.has_inputs = true;
    graph.mutable_extra(id).input.reset();
  }
  return told;
}

// Whether a graph is a step with forward and backward: not a subgraph, not one half, not inference.
bool is_whole_step(const Graph& graph) {
  return graph.kind == GraphKind::kUnspecified || graph.kind == GraphKind::kForwardLossBackward ||
         graph.kind == GraphKind::kJoint;
}

// Calls visit(file, graph) for all graphs of all files, or only for `whole_steps`.
void visit_graphs(bool whole_steps, const std::function<void(const std::string&, Graph&)>& visit) {
  for (const std::string& file : testdata_files()) {
    const std::unique_ptr<Module> module = load_testdata(file);
    for (const GraphId id : module->graphs()) {
      Graph& graph = module->graph(id);
      if (!whole_steps || is_whole_step(graph)) visit(file, graph);
    }
  }
}

struct Row {
  const char* name;
  size_t count;
  const char* reason;
};

template <size_t N>
void check_counts(const Row (&rows)[N], const std::map<std::string, size_t>& counts) {
  std::vector<std::string> expected, found;
  for (const Row& row : rows) {
    CHECK_FALSE(std::string_view(row.reason).empty());
    expected.push_back(std::string(row.name) + ": " + std::to_string(row.count));
  }
  for (const auto& [name, count] : counts) found.push_back(name + ": " + std::to_string(count));
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  if (has_all_testdata()) CHECK(expected == found);
}

// ---- storages

constexpr Row kStorageRows[] = {
    {"agree", 482195, "the same tensors stand on one storage"},
    {"wait", 21313,
     "a wait hands back its collective's result; the fake kernel of tracing gives it a storage of its own"},
    {"copy", 2273,
     "PyTorch's rematerialization copies a node with its metadata, so that the copy keeps the original's id"},
    {"out", 183,
     "an out-variant, and a receive, hands back the memory it was given; the fake kernel of tracing gives it its own"},
    {"replaced base", 541,
     "a pass of the framework put another base under the view, which keeps the id of the old one"},
    {"no value", 14,
     "results of a higher-order op that were traced without its value: as far as the graph shows, they may share "
     "memory"},
    {"tied", 34, "two placeholders on one storage (tied weights, slices of one batch): only the caller knows"},
};

// How storages differ at a tensor: its derived storage was met before, its recorded one was, or
// both.
enum class Difference : uint8_t { kSplit, kJoin, kBoth };

bool is_output_of_framework_pass(const std::string& file) {
  for (const char* pass : {"overlap", "bucketed", "tagged", "torchremat"}) {
    if (file.find(pass) != std::string::npos) return true;
  }
  return false;
}

// Whether the node picks a result of a call whose value the trace did not record.
bool reads_call_without_value(const Graph& graph, NodeId node) {
  const std::vector<NodeId> inputs = graph.inputs(node);
  return inputs.size() == 1 && graph[inputs[0]].is_call() && graph.value(inputs[0]).kind == ValueKind::kAbsent;
}

const char* class_of(const std::string& file, const Graph& graph, NodeId node, Difference difference) {
  const Op& op = graph.op(node);
  const bool is_copy = graph.name_of(node).ends_with("_recomputed");
  if (graph[node].kind == NodeKind::kPlaceholder) return difference == Difference::kJoin ? "tied" : nullptr;
  if (is_copy && difference != Difference::kSplit) return "copy";
  if (difference != Difference::kSplit) return nullptr;
  if (op.has(Effect::kWaits)) return "wait";
  if (op.has(Effect::kCollective) && !op.writes.empty()) return "out";
  if (reads_call_without_value(graph, node)) return "no value";
  return op.view == ViewKind::kView && is_output_of_framework_pass(file) ? "replaced base" : nullptr;
}

// Walks both partitions together. A pair of a derived and a recorded storage is classified at its
// first tensor, so that one cause counts once.
void compare_storages(const std::string& file, const Graph& graph, const Told& told,
                      std::map<std::string, size_t>& counts) {
  const StorageMap map(graph);
  std::set<std::pair<BufferId, StorageId>> pairs;
  IdMap<BufferId, bool> buffer_met(map.num_buffers(), false);
  IdMap<StorageId, bool> storage_met(graph.module().num_storages(), false);
  for (const NodeId node : graph.nodes()) {
    if (graph[node].kind == NodeKind::kOutput) continue;
    const std::vector<StorageId>& carried = told.storages[node];
    const std::span<const BufferId> derived = map.buffers(node);
    if (carried.empty()) continue;
    REQUIRE(derived.size() == carried.size());
    for (size_t i = 0; i < carried.size(); ++i) {
      REQUIRE(derived[i].is_valid());
      REQUIRE(carried[i].is_valid());
      const bool was_derived = buffer_met[derived[i]];
      const bool was_carried = storage_met[carried[i]];
      buffer_met[derived[i]] = true;
      storage_met[carried[i]] = true;
      if (!pairs.emplace(derived[i], carried[i]).second || (!was_derived && !was_carried)) {
        ++counts["agree"];
        continue;
      }
      const Difference difference = !was_carried  ? Difference::kSplit
                                    : was_derived ? Difference::kBoth
                                                  : Difference::kJoin;
      const char* name = class_of(file, graph, node, difference);
      if (name == nullptr) FAIL_CHECK(file << ": " << print_node(graph, node));
      if (name != nullptr) ++counts[name];
    }
  }
}

TEST_CASE("testdata: storages derived without the file's ids differ from them for known reasons", "[testdata]") {
  std::map<std::string, size_t> counts;
  visit_graphs(false, [&counts](const std::string& file, Graph& graph) {
    const Told told = strip(graph);
    compare_storages(file, graph, told, counts);
  });
  check_counts(kStorageRows, counts);
}

// ---- phases

constexpr Row kPhaseRows[] = {
    {"between chunks", 9,
     "copies of a loss in chunks: written forward between the backward parts of two chunks, out of their gradients"},
    {"agree", 426980, "the same phase"},
    {"seed", 41, "autograd makes the gradient of the loss before it starts to mark"},
    {"unmarked", 280, "a pass of the framework made the node and marked nothing; it belongs to gradients all the same"},
    {"moved", 18,
     "a marked node that depends on no gradient, scheduled before the seed by a pass of the framework: "
     "nothing but its old place told"},
};

const char* class_of(const std::string& file, const Told& told, const PhaseMap& derived, NodeId node) {
  const bool is_marked = told.is_marked[node];
  const Phase carried = told.phases.phase[node];
  const Phase phase = derived.phase[node];
  if (carried == phase) return "agree";
  if (carried == Phase::kForward && phase == Phase::kBackward && !is_marked) {
    const bool is_seed = std::find(derived.seeds.begin(), derived.seeds.end(), node) != derived.seeds.end();
    if (is_seed) return "seed";
    if (file.find("chunked_loss") != std::string::npos) return "between chunks";
    return is_output_of_framework_pass(file) ? "unmarked" : nullptr;
  }
  const bool was_moved = carried == Phase::kBackward && phase == Phase::kForward && is_marked;
  return was_moved && is_output_of_framework_pass(file) ? "moved" : nullptr;
}

// Sets the role of placeholders that the graph alone shows to be tangents; phases are inferred from
// it.
void tell_tangents(Graph& graph, const RoleMap& roles) {
  for (const DerivedInput& input : roles.inputs) {
    if (input.role != InputRole::kTangent) continue;
    InputSpec spec;
    spec.role = input.role;
    graph.mutable_extra(input.node).input = spec;
  }
}

TEST_CASE("testdata: phases derived without marks and roles differ from the marks for known reasons", "[testdata]") {
  std::map<std::string, size_t> counts;
  visit_graphs(true, [&counts](const std::string& file, Graph& graph) {
    const Told told = strip(graph);
    if (!told.phases.has_markers) return;
    tell_tangents(graph, infer_roles(graph));
    const PhaseMap derived = infer_phases(graph);
    for (const NodeId node : graph.nodes()) {
      if (graph[node].kind == NodeKind::kOutput) continue;
      const char* name = class_of(file, told, derived, node);
      if (name == nullptr) FAIL_CHECK(file << ": " << print_node(graph, node));
      if (name != nullptr) ++counts[name];
    }
  });
  check_counts(kPhaseRows, counts);
}

// ---- roles

constexpr Row kRoleRows[] = {
    {"parameter: parameter", 12987, "its gradient leaves the graph"},
    {"parameter: not shown, no tensor", 6206,
     "the device mesh of a distributed parameter has no gradient to know it by"},
    {"parameter: not shown, tied", 7, "frozen, or a tied weight whose gradient belongs to another of its placeholders"},
    {"buffer: not shown", 2720, "the graph treats a buffer as it treats an input"},
    {"input: not shown", 377, "the graph treats an input as it treats a buffer"},
    {"tangent: tangent", 37, "only backward reads it, and places and shapes fit"},
    {"loss: loss", 71, "the gradient's seed is made like it"},
    {"loss: not shown", 1, "a loss in chunks is differentiated chunk by chunk, and the sum is only returned"},
    {"gradient: gradient", 12987,
     "depends on the seed or a tangent; of the placeholder the file names, without exception"},
    {"gradient: not shown, no tensor", 6206, "the device mesh that stands beside a distributed parameter's gradient"},
    {"gradient: not shown, none", 4, "None: no node reads this placeholder, which is one name of a tied weight"},
    {"mutation: not shown", 546, "a buffer's new value, computed without writing, looks like a user's output"},
    {"unspecified: not shown", 812, "None in the place of a gradient"},
    {"user: not shown", 1,
     "forward's result in a graph of forward and backward: nothing tells it from a buffer's new value"},
};

bool is_tensor(const Graph& graph, NodeId node) { return graph.value(node).kind == ValueKind::kTensor; }

void compare_inputs(const Graph& graph, const Told& told, const RoleMap& roles, std::map<std::string, size_t>& counts) {
  for (const DerivedInput& input : roles.inputs) {
    std::string name = std::string(name_of(told.inputs[input.node])) + ": ";
    if (input.role != InputRole::kUnspecified) {
      name += name_of(input.role);
    } else {
      name += "not shown";
      if (told.inputs[input.node] == InputRole::kParameter)
        name += is_tensor(graph, input.node) ? ", tied" : ", no tensor";
    }
    ++counts[name];
  }
}

void compare_outputs(const std::string& file, const Graph& graph, const Told& told, const RoleMap& roles,
                     std::map<std::string, size_t>& counts) {
  REQUIRE(roles.outputs.size() == told.outputs.size());
  for (size_t i = 0; i < roles.outputs.size(); ++i) {
    const DerivedOutput& output = roles.outputs[i];
    const OutputSpec& carried = told.outputs[i];
    std::string name = std::string(name_of(carried.role)) + ": ";
    if (output.role != OutputRole::kUnspecified) {
      name += name_of(output.role);
    } else {
      const bool is_gradient = carried.role == OutputRole::kGradient;
      const bool is_mesh = is_gradient && output.node.is_valid() && !is_tensor(graph, output.node);
      name += is_mesh                                  ? "not shown, no tensor"
              : is_gradient && !output.node.is_valid() ? "not shown, none"
                                                       : "not shown";
    }
    ++counts[name];
    if (output.role != OutputRole::kGradient) continue;
    INFO(file << ": output " << i);
    REQUIRE(output.of.is_valid());
    CHECK(graph[output.of].name == carried.of);
  }
}

TEST_CASE("testdata: roles derived without those of the file never contradict them", "[testdata]") {
  std::map<std::string, size_t> counts;
  visit_graphs(true, [&counts](const std::string& file, Graph& graph) {
    if (file.find("pipeline") != std::string::npos) return;  // other stages hold the loss
    const Told told = strip(graph);
    const RoleMap roles = infer_roles(graph);
    if (!told.has_inputs) return;
    compare_inputs(graph, told, roles, counts);
    compare_outputs(file, graph, told, roles, counts);
  });
  check_counts(kRoleRows, counts);
}

}  // namespace
}  // namespace fxopt
