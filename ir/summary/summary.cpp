#include "ir/summary/summary.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include "core/hash.h"
#include "core/hash_table.h"
#include "core/saturate.h"
#include "ir/alias/effect_map.h"
#include "ir/alias/sizes.h"
#include "ir/alias/storages.h"
#include "ir/graph/module.h"
#include "ir/memory/memory.h"
#include "ir/step/infer_roles.h"
#include "ir/step/phases.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

constexpr Effect kCounted[] = {Effect::kRandom,  Effect::kMutates,  Effect::kCollective,
                               Effect::kWaits,   Effect::kHostSync, Effect::kBarrier,
                               Effect::kAsserts, Effect::kOpaque,   Effect::kNondeterministic};

size_t phase_index(Phase phase) {
  const size_t index = static_cast<size_t>(phase);
  return index < kNumPhases ? index : 0;  // a phase of a newer schema
}

bool is_static(const Module& module, DimsId dims) {
  if (!dims.is_valid()) return true;
  const std::vector<Dim>& list = module.dims(dims);
  return std::ranges::all_of(list, [](const Dim& dim) { return dim.is_static(); });
}

class Summarizer {
 public:
  Summarizer(const Graph& graph, Validity validity, const std::vector<NodeId>* part, SubgraphEffects& subgraphs)
      : graph_(graph), module_(graph.module()), values_(symbol_values(graph.module(), {})), effects_(graph, subgraphs) {
    result_.graph = &graph;
    result_.validity = validity;
    result_.is_part = part != nullptr;
    if (part != nullptr) nodes_ = *part;
    for (const NodeId node : graph.nodes()) {
      if (part == nullptr) nodes_.push_back(node);
    }
    for (const NodeId node : nodes_) is_in_[node] = true;
  }

  GraphSummary run() {
    derive();
    for (const NodeId node : nodes_) count_node(node);
    count_outputs();
    add_storages();
    if (result_.validity == Validity::kValid) count_effects();
    result_.modules.finish();
    result_.groups = collectives_by_group(graph_, nodes_, values_);
    result_.opaque = find_opaque(graph_, nodes_, result_.validity == Validity::kValid ? &effects_ : nullptr);
    finish_rows();
    return std::move(result_);
  }

 private:
  // Derives the facts that only a valid graph has.
  void derive() {
    if (result_.validity == Validity::kBroken) return;
    storages_.emplace(graph_, effects_);
    const PhaseMap phases = resolve_phases(graph_, *storages_);
    phases_ = phases.phase;
    result_.phases_derived = !phases.has_markers;
    MemoryOptions options;
    report_ = analyze_memory(graph_, *storages_, options);
    for (const NodeId node : graph_.nodes()) {
      if (recorded_role(graph_, node) != InputRole::kUnspecified) return;
    }
    const RoleMap roles = infer_roles(graph_, *storages_);
    result_.roles_derived = !roles.inputs.empty();
    for (const DerivedInput& input : roles.inputs) roles_[input.node] = input.role;
  }

  Phase phase_of(NodeId node) const {
    const bool is_known = result_.validity == Validity::kValid;
    return static_cast<Phase>(phase_index(is_known ? phases_.get(node) : graph_[node].phase));
  }

  InputRole role_of(NodeId node) const {
    return result_.roles_derived ? roles_.get(node) : recorded_role(graph_, node);
  }

  void count_node(NodeId id) {
    const Node& node = graph_[id];
    const Phase phase = phase_of(id);
    ++result_.nodes;
    ++result_.stored_phases[node.phase];
    if (node.tag != Tag::kNone) ++result_.tags[node.tag];
    PhaseRow& row = phase_rows_[phase_index(phase)];
    ++row.nodes;
    row.calls += node.is_call() ? 1 : 0;
    count_edges(id);
    for_each_tensor(graph_, node.value, [this](ValueId, const Tensor& tensor) { ++dtype_row(tensor.dtype).tensors; });
    ModuleFigures figures;
    figures.nodes = 1;
    figures.phases[phase_index(phase)] = 1;
    result_.modules.add(place_of(node.module_path), figures, kind_of(id, phase));
    if (node.kind == NodeKind::kPlaceholder) count_input(id, input_row(role_of(id)));
    if (node.kind == NodeKind::kGetAttr) count_input(id, result_.attributes);
    if (node.is_call()) count_call(node.target, phase);
  }

  // Returns the place of a module path in the tree. Each path is looked up once.
  size_t place_of(StringId path) {
    const StringId known = path.is_valid() ? path : StringId(0);  // the empty string
    const auto found = places_.find(known);
    if (found != places_.end()) return found->second;
    return places_[known] = result_.modules.place_of(module_.text(known));
  }

  void count_edges(NodeId id) {
    if (!result_.is_part) return;
    graph_.for_each_input(id, [&](NodeId input) { ++(is_in_.get(input) ? result_.edges : result_.edges_in); });
    for (UseId use = graph_.first_use(id); use.is_valid(); use = graph_.use(use).next) {
      result_.edges_out += is_in_.get(graph_.use(use).user) ? 0 : 1;
    }
  }

  void count_call(TargetId target, Phase phase) {
    ++result_.calls;
    if (!target.is_valid()) return;  // a broken graph
    OpRow& row = op_row(target);
    row.kind = module_.target(target).op->compute;
    ++row.calls;
    ++row.phases[phase_index(phase)];
  }

  OpRow& op_row(TargetId target) {
    const auto [entry, is_new] = op_places_.emplace(target, result_.ops.size());
    if (is_new) result_.ops.emplace_back().target = target;
    return result_.ops[entry->second];
  }

  DTypeRow& dtype_row(DType dtype) {
    DTypeRow& row = dtypes_[dtype];
    row.dtype = dtype;
    return row;
  }

  InputRow& input_row(InputRole role) {
    InputRow& row = inputs_[role];
    row.role = role;
    return row;
  }

  // Hashes the target, phase and type of a node, to compare modules. All symbols are treated as
  // equal.
  uint64_t kind_of(NodeId id, Phase phase) const {
    const Node& node = graph_[id];
    uint64_t hash = hash_combine(static_cast<uint64_t>(node.kind), static_cast<uint64_t>(phase));
    if (node.target.is_valid() && node.is_call()) hash = hash_combine(hash, node.target.index());
    const Value& value = graph_.value(id);
    return value.kind == ValueKind::kTensor ? hash_combine(hash, type_of(graph_.pool().tensor(value))) : hash;
  }

  uint64_t type_of(const Tensor& tensor) const {
    const uint64_t hash = static_cast<uint64_t>(tensor.dtype);
    if (is_static(module_, tensor.sizes)) return hash_combine(hash, tensor.sizes.index());
    uint64_t dims = hash;
    for (const Dim& dim : module_.dims(tensor.sizes)) {
      dims = hash_combine(dims, dim.is_static() ? static_cast<uint64_t>(dim.value) : UINT64_MAX);
    }
    return dims;
  }

  // Counts a placeholder or an attribute. Counts its tensor only if no earlier node has the same
  // tensor.
  void count_input(NodeId id, InputRow& row) {
    const Value& value = graph_.value(id);
    if (graph_[id].kind == NodeKind::kPlaceholder) {
      ++row.nodes;
    } else {
      row.nodes += value.kind == ValueKind::kTensor ? 1 : 0;
    }
    if (value.kind != ValueKind::kTensor) return;
    const Tensor& tensor = graph_.pool().tensor(value);
    if (!is_first_of_its_kind(id, tensor)) {
      ++row.tied;
      return;
    }
    ++row.tensors;
    ++row.dtypes[tensor.dtype];
    const NodeExtra* extra = graph_.extra(id);
    const bool has_spec = extra != nullptr && extra->input.has_value();
    if (has_spec && !extra->input->subclass_path.empty()) ++row.parts;
    const std::optional<int64_t> elements = tensor_elements(module_, tensor, values_);
    row.elements = saturating_add(row.elements, elements.value_or(0));
    row.unknown_elements += elements.has_value() ? 0 : 1;
    if (role_of(id) != InputRole::kParameter) return;
    ModuleFigures figures;
    figures.parameters = 1;
    figures.elements = elements.value_or(0);
    figures.unknown_elements = elements.has_value() ? 0 : 1;
    result_.modules.add(result_.modules.place_of(module_of(graph_, id)), figures, type_of(tensor));
  }

  bool is_first_of_its_kind(NodeId id, const Tensor& tensor) {
    if (!storages_.has_value() || storages_->buffers(id).empty()) return true;
    const BufferId buffer = storages_->buffers(id).front();
    if (!buffer.is_valid()) return true;
    return views_.insert({buffer, tensor.dtype, tensor.sizes, tensor.strides, tensor.offset.value, tensor.offset.expr})
        .second;
  }

  void count_outputs() {
    const NodeId output = graph_.output();
    if (!output.is_valid() || !is_in_.get(output)) return;
    for (const OutputSpec& spec : graph_.outputs) ++result_.outputs[spec.role];
  }

  // Returns for each storage whether its size depends on symbols.
  std::vector<bool> depend_on_symbols() const {
    std::vector<bool> depends;
    for (size_t i = 0; i < storages_->num_buffers(); ++i) {
      const SizeSource source = size_source(graph_, *storages_, BufferId(i));
      depends.push_back(source.kind == SizeKind::kLike ? depends[source.like.index()]
                                                       : !size_expressions(module_, source).empty());
    }
    return depends;
  }

  // Adds each storage to the figures of its node.
  void add_storages() {
    if (!storages_.has_value()) return;
    const std::vector<bool> depends = depend_on_symbols();
    for (size_t i = 0; i < storages_->num_buffers(); ++i) {
      const Buffer& buffer = storages_->buffer(BufferId(i));
      const NodeId owner = owner_in_part(BufferId(i));
      // A subgraph.
      const bool is_no_tensor = buffer.source == BufferSource::kAttribute && !buffer.value.is_valid();
      if (!owner.is_valid() || is_no_tensor) continue;
      const Lifetime& life = report_.lifetimes[i];
      const StorageSum sum{1, life.bytes, life.known ? size_t{0} : 1, life.known && depends[i] ? size_t{1} : 0};
      if (!life.known) result_.unknown_nodes.push_back(owner);
      result_.storages.add(sum);
      add_storage(owner, buffer, sum);
    }
    if (result_.is_part) return;
    for (const DevicePeak& peak : report_.devices) result_.peaks.push_back({peak.device, peak.bytes, peak.node});
  }

  void add_storage(NodeId owner, const Buffer& buffer, const StorageSum& sum) {
    if (buffer.value.is_valid()) {
      dtype_row(graph_.pool().tensor(graph_.pool().value(buffer.value)).dtype).storages.add(sum);
    }
    if (buffer.source == BufferSource::kPlaceholder) return input_row(role_of(owner)).storages.add(sum);
    if (buffer.source == BufferSource::kAttribute) return result_.attributes.storages.add(sum);
    const Node& node = graph_[owner];
    result_.made.add(sum);
    phase_rows_[phase_index(phase_of(owner))].made.add(sum);
    ModuleFigures figures;
    figures.made = sum;
    result_.modules.add_figures(place_of(node.module_path), figures);
    if (node.is_call()) op_row(node.target).made.add(sum);
  }

  // Returns the node for which a storage is counted. This is the node that makes the storage, or
  // the first input on the storage in the selection.
  NodeId owner_in_part(BufferId id) {
    const Buffer& buffer = storages_->buffer(id);
    if (is_in_.get(buffer.producer)) return buffer.producer;
    if (buffer.source == BufferSource::kNode) return NodeId();
    if (first_inputs_.size() == 0) find_first_inputs();
    return first_inputs_.get(id);
  }

  void find_first_inputs() {
    first_inputs_ = IdMap<BufferId, NodeId>(storages_->num_buffers());
    for (const NodeId node : nodes_) {
      if (graph_[node].kind != NodeKind::kPlaceholder && graph_[node].kind != NodeKind::kGetAttr) continue;
      for (const BufferId id : storages_->buffers(node)) {
        if (id.is_valid() && !first_inputs_.get(id).is_valid()) first_inputs_[id] = node;
      }
    }
  }

  void count_effects() {
    std::array<size_t, std::size(kCounted)> counts{};
    for (const NodeId node : nodes_) {
      const Effect found = effects_.of(node);
      for (size_t i = 0; i < counts.size(); ++i) counts[i] += has_effect(found, kCounted[i]) ? 1 : 0;
    }
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] > 0) result_.effects.emplace_back(kCounted[i], counts[i]);
    }
  }

  void finish_rows() {
    if (!result_.is_part) result_.edges = graph_.num_edges();
    for (size_t i = 0; i < kNumPhases; ++i) {
      phase_rows_[i].phase = static_cast<Phase>(i);
      if (phase_rows_[i].nodes > 0) result_.phases.push_back(phase_rows_[i]);
    }
    std::ranges::stable_sort(result_.unknown_nodes,
                             [this](NodeId a, NodeId b) { return graph_.position(a) < graph_.position(b); });
    for (const auto& [role, row] : inputs_) result_.inputs.push_back(row);
    std::ranges::stable_sort(result_.inputs, [](const InputRow& a, const InputRow& b) {
      return std::tuple(a.storages.bytes, a.nodes) > std::tuple(b.storages.bytes, b.nodes);
    });
    for (const auto& [dtype, row] : dtypes_) result_.dtypes.push_back(row);
    std::ranges::stable_sort(result_.dtypes,
                             [](const DTypeRow& a, const DTypeRow& b) { return a.tensors > b.tensors; });
    finish_ops();
  }

  void finish_ops() {
    const auto name = [this](const OpRow& row) { return module_.text(module_.target(row.target).name); };
    std::ranges::sort(result_.ops, [&name](const OpRow& a, const OpRow& b) {
      const auto figures = [](const OpRow& row) { return std::tuple(row.calls, row.made.bytes); };
      return figures(a) != figures(b) ? figures(a) > figures(b) : name(a) < name(b);
    });
    std::map<ComputeClass, KindRow> kinds;
    for (size_t i = 0; i < result_.ops.size(); ++i) {
      const OpRow& op = result_.ops[i];
      KindRow& row = kinds[op.kind];
      row.kind = op.kind;
      row.calls += op.calls;
      for (size_t phase = 0; phase < kNumPhases; ++phase) row.phases[phase] += op.phases[phase];
      row.made.add(op.made);
      row.ops.push_back(i);
    }
    for (auto& [kind, row] : kinds) result_.kinds.push_back(std::move(row));
    std::ranges::stable_sort(result_.kinds, [](const KindRow& a, const KindRow& b) { return a.calls > b.calls; });
  }

  // A tensor's view of a storage.
  using View = std::tuple<BufferId, DType, DimsId, DimsId, int64_t, ExprId>;

  const Graph& graph_;
  const Module& module_;
  SymbolValues values_;
  GraphSummary result_;
  std::vector<NodeId> nodes_;
  IdMap<NodeId, bool> is_in_;
  IdMap<NodeId, Phase> phases_;
  IdMap<NodeId, InputRole> roles_;
  EffectMap effects_;
  std::optional<StorageMap> storages_;
  MemoryReport report_;
  std::set<View> views_;
  IdMap<BufferId, NodeId> first_inputs_;
  // These are hash tables and not IdMaps, because each graph of a module has these tables. They
  // must not be as large as the tables of the module.
  HashMap<StringId, size_t> places_;
  HashMap<TargetId, size_t> op_places_;  // in result_.ops
  std::array<PhaseRow, kNumPhases> phase_rows_{};
  std::map<InputRole, InputRow> inputs_;
  std::map<DType, DTypeRow> dtypes_;
};

}  // namespace

GraphSummary summarize(const Graph& graph, Validity validity, const std::vector<NodeId>* part) {
  SubgraphEffects subgraphs(graph.module());
  return summarize(graph, validity, part, subgraphs);
}

GraphSummary summarize(const Graph& graph, Validity validity, const std::vector<NodeId>* part,
                       SubgraphEffects& subgraphs) {
  return Summarizer(graph, validity, part, subgraphs).run();
}

}  // namespace fxopt
