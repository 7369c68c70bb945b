#include "ir/memory/memory.h"

#include <algorithm>
#include <utility>

#include "core/saturate.h"
#include "ir/analysis/infer_roles.h"
#include "ir/analysis/origins.h"
#include "ir/analysis/phases.h"
#include "ir/analysis/values.h"

namespace fxopt {
namespace {

InputRole recorded_role(const Graph& graph, NodeId node) {
  const NodeExtra* extra = graph.extra(node);
  return extra != nullptr && extra->input.has_value() ? extra->input->role : InputRole::kUnspecified;
}

MemoryClass class_of_input(InputRole role) {
  switch (role) {
    case InputRole::kParameter:
      return MemoryClass::kParameter;
    case InputRole::kBuffer:
      return MemoryClass::kBuffer;
    case InputRole::kOptimizerState:
      return MemoryClass::kOptimizerState;
    case InputRole::kSavedValue:
      return MemoryClass::kSavedValue;
    case InputRole::kConstant:
      return MemoryClass::kConstant;
    default:
      return MemoryClass::kInput;
  }
}

bool is_donated(const Graph& graph, NodeId node) {
  const NodeExtra* extra = graph.extra(node);
  return extra != nullptr && extra->input.has_value() && extra->input->donated;
}

// True for what outlives the step whoever calls it.
bool is_kept_by_caller(MemoryClass kind) {
  return kind == MemoryClass::kParameter || kind == MemoryClass::kBuffer || kind == MemoryClass::kOptimizerState ||
         kind == MemoryClass::kConstant;
}

class Analyzer {
 public:
  Analyzer(const Graph& graph, const StorageMap& storages, const MemoryOptions& options)
      : graph_(graph),
        storages_(storages),
        options_(options),
        values_(symbol_values(graph.module(), options.symbols)),
        lifetimes_(storages.num_buffers()),
        is_read_(storages.num_buffers(), false),
        last_reader_is_backward_(storages.num_buffers(), false) {
    if (options.derive_classes) phases_ = resolve_phases(graph);
  }

  MemoryReport run() {
    end_ = graph_.num_nodes() == 0 ? 0 : static_cast<uint32_t>(graph_.num_nodes() - 1);
    derive_roles();
    mark_gradients();
    for (size_t i = 0; i < lifetimes_.size(); ++i) start(BufferId(i));
    for (const NodeId node : graph_.nodes()) touch(node);
    find_ends();
    for (size_t i = 0; i < lifetimes_.size(); ++i) finish(BufferId(i));
    find_trained();
    find_peaks();
    report_.lifetimes = std::move(lifetimes_);
    return std::move(report_);
  }

 private:
  void start(BufferId id) {
    const Buffer& buffer = storages_.buffer(id);
    Lifetime& life = lifetimes_[id.index()];
    life.buffer = id;
    if (buffer.source == BufferSource::kNode) life.first = life.last = graph_.position(buffer.producer);
    const std::optional<int64_t> bytes = bytes_of(buffer);
    life.known = bytes.has_value();
    life.bytes = bytes.value_or(0);
    if (!life.known) {
      ++report_.unknown_buffers;
      report_.unknown_nodes.push_back(buffer.producer);
    }
  }

  // An input's storage ends with its last reader where each placeholder on it is donated, or boxed and kept by no step.
  void find_ends() {
    ends_.assign(lifetimes_.size(), true);
    for (size_t i = 0; i < lifetimes_.size(); ++i) {
      if (storages_.buffer(BufferId(i)).source != BufferSource::kPlaceholder) ends_[i] = false;
    }
    for (const NodeId node : graph_.nodes()) {
      if (graph_[node].kind != NodeKind::kPlaceholder) continue;
      const bool is_boxed =
          options_.inputs == InputLifetime::kBoxed && !is_kept_by_caller(class_of_input(role_of(node)));
      if (is_boxed || is_donated(graph_, node)) continue;
      for (const BufferId id : storages_.buffers(node)) {
        if (id.is_valid()) ends_[id.index()] = false;
      }
    }
  }

  InputRole role_of(NodeId placeholder) const {
    return report_.roles_derived ? derived_.get(placeholder) : recorded_role(graph_, placeholder);
  }

  // The class, and the end of what the caller keeps or nobody reads.
  void finish(BufferId id) {
    const Buffer& buffer = storages_.buffer(id);
    Lifetime& life = lifetimes_[id.index()];
    life.kind = class_of(id);
    if (buffer.source == BufferSource::kNode) return;
    if (!ends_[id.index()] || !is_read_[id.index()]) life.last = end_;
  }

  void find_trained() {
    std::sort(report_.gradients.begin(), report_.gradients.end());
    std::vector<BufferId>& trained = report_.trained;
    if (trained.empty() && !gradients_.empty()) {
      for (const Lifetime& life : lifetimes_) trained.push_back(life.buffer);
    }
    std::erase_if(trained, [this](BufferId id) { return lifetimes_[id.index()].kind != MemoryClass::kParameter; });
    std::sort(trained.begin(), trained.end());
    trained.erase(std::unique(trained.begin(), trained.end()), trained.end());
  }

  // Of an operator that works in a clone of its argument's storage the bytes of that, which the file cannot be trusted
  // with: fake kernels give the part that the strides reach.
  std::optional<int64_t> cloned_bytes(const Buffer& buffer) const {
    if (buffer.source != BufferSource::kNode || !graph_.op(buffer.producer).clones_storage) return std::nullopt;
    const NodeId from = first_argument(graph_, buffer.producer);
    const Tensor* made = single_tensor(graph_, buffer.producer);
    const Tensor* given = from.is_valid() ? single_tensor(graph_, from) : nullptr;
    // Strides that were not preserved are those of an argument with overlaps, which is copied as it is.
    if (given == nullptr || made == nullptr || made->strides != given->strides) return std::nullopt;
    const BufferId id = storages_.buffers(from)[0];
    return id.is_valid() && lifetimes_[id.index()].known ? std::optional<int64_t>(lifetimes_[id.index()].bytes)
                                                         : std::nullopt;
  }

  std::optional<int64_t> bytes_of(const Buffer& buffer) const {
    const std::optional<int64_t> cloned = cloned_bytes(buffer);
    if (cloned.has_value()) return cloned;
    const Module& module = graph_.module();
    if (buffer.carried.is_valid()) {
      const Integer& bytes = module.storage(buffer.carried).bytes;
      const std::optional<int64_t> recorded =
          bytes.expr.is_valid() ? module.exprs.evaluate(bytes.expr, values_) : bytes.value;
      if (bytes.is_known()) return recorded.value_or(-1) < 0 ? std::nullopt : recorded;
    }
    if (!buffer.value.is_valid()) return stands_for_tensor(buffer) ? std::nullopt : std::optional<int64_t>(0);
    return storage_bytes(module, graph_.pool().tensor(graph_.pool().value(buffer.value)), values_);
  }

  // A node without a recorded value: a call may well make a tensor of unknown size, an attribute may be a subgraph.
  bool stands_for_tensor(const Buffer& buffer) const { return buffer.source == BufferSource::kNode; }

  void touch(NodeId node) {
    const uint32_t place = graph_.position(node);
    const uint32_t held = graph_.op(node).has(Effect::kCollective) ? std::max(place, last_wait(node)) : place;
    const bool backward = is_backward(node);
    for (const BufferId id : storages_.reads(node)) {
      extend(id, held);
      is_read_[id.index()] = true;
      if (backward) last_reader_is_backward_[id.index()] = true;
    }
    keep_alive(node, held);
    const NodeExtra* extra = graph_.extra(node);
    if (extra == nullptr) return;
    for (const ControlDep& dep : extra->control) {
      if (dep.kind == ControlKind::kKeepAlive) keep_alive(dep.node, place);
    }
  }

  void keep_alive(NodeId node, uint32_t place) {
    for (const BufferId id : storages_.buffers(node)) {
      if (id.is_valid()) extend(id, place);
    }
  }

  void extend(BufferId id, uint32_t place) {
    Lifetime& life = lifetimes_[id.index()];
    life.last = std::max(life.last, place);
  }

  // The place of the last wait on what `collective` started, looking through getitems; 0 without a wait.
  uint32_t last_wait(NodeId collective) const {
    uint32_t last = 0;
    std::vector<NodeId> taken = {collective};
    while (!taken.empty()) {
      const NodeId from = taken.back();
      taken.pop_back();
      for (UseId use = graph_.first_use(from); use.is_valid(); use = graph_.use(use).next) {
        const NodeId user = graph_.use(use).user;
        const Op& op = graph_.op(user);
        if (op.has(Effect::kWaits)) last = std::max(last, graph_.position(user));
        // A getitem takes its first argument apart; one that has it as an index, too, is met twice and followed once.
        const bool follows = op.view == ViewKind::kProjection && graph_.use(use).slot == first_slot(user);
        if (follows) taken.push_back(user);
      }
    }
    return last;
  }

  ArgIndex first_slot(NodeId node) const { return ArgIndex(graph_[node].args.first); }

  bool is_backward(NodeId node) const {
    return phases_.has_value() ? phases_->is_backward(node) : graph_[node].phase == Phase::kBackward;
  }

  void derive_roles() {
    if (!options_.derive_classes && options_.inputs != InputLifetime::kBoxed) return;
    bool has_inputs = false;
    for (const NodeId node : graph_.nodes()) {
      if (graph_[node].kind != NodeKind::kPlaceholder) continue;
      has_inputs = has_inputs || recorded_role(graph_, node) != InputRole::kUnspecified;
    }
    if (has_inputs && !graph_.outputs.empty()) return;
    const RoleMap roles = infer_roles(graph_);
    report_.roles_derived = !has_inputs;
    if (!has_inputs) {
      for (const DerivedInput& input : roles.inputs) derived_[input.node] = input.role;
    }
    if (!graph_.outputs.empty()) return;
    for (const DerivedOutput& output : roles.outputs) {
      if (output.role == OutputRole::kGradient && output.node.is_valid()) add_gradient(output.node, output.of);
    }
  }

  // `of`: the placeholder; invalid when it is not known.
  void add_gradient(NodeId node, NodeId of) {
    const std::span<const BufferId> parameter = of.is_valid() ? storages_.buffers(of) : std::span<const BufferId>();
    for (const BufferId id : storages_.buffers(node)) {
      if (!id.is_valid()) continue;
      gradients_.push_back(id);
      report_.gradients.emplace_back(id, parameter.empty() ? BufferId() : parameter.front());
    }
    if (!of.is_valid()) return;
    for (const BufferId id : storages_.buffers(of)) {
      if (id.is_valid()) report_.trained.push_back(id);
    }
  }

  void mark_gradients() {
    if (graph_.outputs.empty()) return;
    const std::vector<NodeId> leaves = output_leaves(graph_);
    for (size_t i = 0; i < std::min(leaves.size(), graph_.outputs.size()); ++i) {
      const OutputSpec& output = graph_.outputs[i];
      if (!leaves[i].is_valid() || output.role != OutputRole::kGradient) continue;
      add_gradient(leaves[i], output.of.is_valid() ? graph_.find(output.of) : NodeId());
    }
  }

  MemoryClass class_of(BufferId id) {
    const Buffer& buffer = storages_.buffer(id);
    if (buffer.source == BufferSource::kAttribute) return MemoryClass::kConstant;
    if (buffer.source == BufferSource::kPlaceholder) {
      return class_of_input(role_of(buffer.producer));
    }
    if (std::binary_search(sorted_gradients().begin(), sorted_gradients().end(), id)) return MemoryClass::kGradient;
    if (is_recomputed(graph_, buffer.producer)) return MemoryClass::kRecomputed;
    if (!is_backward(buffer.producer) && last_reader_is_backward_[id.index()]) return MemoryClass::kSavedValue;
    if (graph_.op(buffer.producer).has(Effect::kCollective)) return MemoryClass::kCommunication;
    return MemoryClass::kTemporary;
  }

  const std::vector<BufferId>& sorted_gradients() {
    if (!gradients_sorted_) {
      std::sort(gradients_.begin(), gradients_.end());
      gradients_sorted_ = true;
    }
    return gradients_;
  }

  void find_peaks() {
    std::vector<StringId> devices;
    for (const Lifetime& life : lifetimes_) {
      const StringId device = storages_.buffer(life.buffer).device;
      if (life.bytes > 0 && std::find(devices.begin(), devices.end(), device) == devices.end())
        devices.push_back(device);
    }
    std::vector<NodeId> schedule;
    for (const NodeId node : graph_.nodes()) schedule.push_back(node);
    for (const StringId device : devices) report_.devices.push_back(peak_of(device, schedule));
    std::sort(report_.devices.begin(), report_.devices.end(), [this](const DevicePeak& a, const DevicePeak& b) {
      if (a.bytes != b.bytes) return a.bytes > b.bytes;
      return graph_.module().text(a.device) < graph_.module().text(b.device);
    });
  }

  DevicePeak peak_of(StringId device, const std::vector<NodeId>& schedule) const {
    DevicePeak peak;
    peak.device = device;
    std::vector<WideSum> change(schedule.size() + 1, 0);
    WideSum inputs = 0;
    for (const Lifetime& life : lifetimes_) {
      if (storages_.buffer(life.buffer).device != device) continue;
      change[life.first] += life.bytes;
      change[life.last + 1] -= life.bytes;
      if (storages_.buffer(life.buffer).source != BufferSource::kNode) inputs += life.bytes;
    }
    WideSum live = 0;
    WideSum most = 0;
    uint32_t place = 0;
    for (uint32_t i = 0; i < schedule.size(); ++i) {
      live += change[i];
      if (live > most) {
        most = live;
        place = i;
      }
    }
    peak.bytes = saturate(most);
    peak.input_bytes = saturate(inputs);
    peak.node = schedule[place];
    for (const Lifetime& life : lifetimes_) {
      if (storages_.buffer(life.buffer).device != device || life.first > place || life.last < place || life.bytes == 0)
        continue;
      peak.live.push_back(life);
      int64_t& of_class = peak.by_class[static_cast<size_t>(life.kind)];
      of_class = saturating_add(of_class, life.bytes);
    }
    std::stable_sort(peak.live.begin(), peak.live.end(), [](const Lifetime& a, const Lifetime& b) {
      if (a.bytes != b.bytes) return a.bytes > b.bytes;
      return a.first < b.first;
    });
    return peak;
  }

  const Graph& graph_;
  const StorageMap& storages_;
  const MemoryOptions& options_;
  SymbolValues values_;
  MemoryReport report_;
  std::vector<Lifetime> lifetimes_;
  std::vector<bool> is_read_, last_reader_is_backward_, ends_;
  std::vector<BufferId> gradients_;
  bool gradients_sorted_ = false;
  std::optional<PhaseMap> phases_;
  IdMap<NodeId, InputRole> derived_;  // where no placeholder has a role
  uint32_t end_ = 0;
};

}  // namespace

std::string_view memory_class_name(MemoryClass value) {
  static constexpr std::string_view kNames[kNumMemoryClasses] = {
      "parameter",   "buffer",     "input",         "constant",  "optimizer state", "gradient",
      "saved value", "recomputed", "communication", "temporary", "workspace"};
  return kNames[static_cast<size_t>(value)];
}

MemoryReport analyze_memory(const Graph& graph, const StorageMap& storages, const MemoryOptions& options) {
  return Analyzer(graph, storages, options).run();
}

std::optional<int64_t> evaluate_dim(const Module& module, const Dim& dim, const SymbolValues& values) {
  return dim.is_static() ? std::optional<int64_t>(dim.value) : module.exprs.evaluate(dim.expr, values);
}

std::optional<int64_t> storage_bytes(const Module& module, const Tensor& tensor, const SymbolValues& values) {
  if (!tensor.sizes.is_valid() || !tensor.strides.is_valid() || tensor.dtype == DType::kUnspecified)
    return std::nullopt;
  const std::vector<Dim>& sizes = module.dims(tensor.sizes);
  const std::vector<Dim>& strides = module.dims(tensor.strides);
  const std::optional<int64_t> offset = evaluate_dim(module, tensor.offset, values);
  if (!offset.has_value() || sizes.size() != strides.size()) return std::nullopt;
  int64_t last = *offset;  // index of the last element
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::optional<int64_t> size = evaluate_dim(module, sizes[i], values);
    const std::optional<int64_t> stride = evaluate_dim(module, strides[i], values);
    if (!size.has_value() || !stride.has_value()) return std::nullopt;
    if (*size == 0) return 0;
    if (*size < 0) return std::nullopt;
    int64_t extent = 0;
    if (__builtin_mul_overflow(*size - 1, *stride, &extent) || __builtin_add_overflow(last, extent, &last)) {
      return std::nullopt;
    }
  }
  int64_t bytes = 0;
  if (__builtin_add_overflow(last, 1, &last) || __builtin_mul_overflow(last, element_size(tensor.dtype), &bytes)) {
    return std::nullopt;
  }
  return bytes < 0 ? std::nullopt : std::optional<int64_t>(bytes);
}

std::optional<int64_t> tensor_elements(const Module& module, const Tensor& tensor, const SymbolValues& values) {
  if (!tensor.sizes.is_valid()) return std::nullopt;
  bool is_empty = false, is_too_large = false;
  int64_t count = 1;
  for (const Dim& dim : module.dims(tensor.sizes)) {
    const std::optional<int64_t> size = evaluate_dim(module, dim, values);
    if (!size.has_value() || *size < 0) return std::nullopt;
    is_empty = is_empty || *size == 0;
    is_too_large = is_too_large || __builtin_mul_overflow(count, *size, &count);
  }
  if (is_empty) return 0;
  return is_too_large ? std::nullopt : std::optional<int64_t>(count);
}

SymbolValues symbol_values(const Module& module, const SymbolValues& given) {
  SymbolValues values = given;
  for (const Symbol& symbol : module.symbols) {
    if (symbol.hint.has_value()) values.emplace(symbol.name, *symbol.hint);
  }
  return values;
}

}  // namespace fxopt
