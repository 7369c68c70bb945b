#include "ir/memory/memory.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <unordered_map>
#include <utility>

#include "core/saturate.h"
#include "ir/alias/collectives.h"
#include "ir/alias/order.h"
#include "ir/alias/sizes.h"
#include "ir/step/infer_roles.h"
#include "ir/step/origins.h"
#include "ir/step/phases.h"
#include "ir/values/call_args.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

MemoryClass class_of_input(InputRole role) {
  static constexpr std::pair<InputRole, MemoryClass> kClasses[] = {
      {InputRole::kParameter, MemoryClass::kParameter},
      {InputRole::kBuffer, MemoryClass::kBuffer},
      {InputRole::kOptimizerState, MemoryClass::kOptimizerState},
      {InputRole::kSavedValue, MemoryClass::kSavedValue},
      {InputRole::kConstant, MemoryClass::kConstant}};
  for (const auto& [each, kind] : kClasses) {
    if (each == role) return kind;
  }
  return MemoryClass::kInput;
}

bool is_donated(const Graph& graph, NodeId node) {
  const InputSpec* spec = recorded_input(graph, node);
  return spec != nullptr && spec->donated;
}

// True for memory that is always kept after the step.
bool is_kept_by_caller(MemoryClass kind) {
  return kind == MemoryClass::kParameter || kind == MemoryClass::kBuffer || kind == MemoryClass::kOptimizerState ||
         kind == MemoryClass::kConstant;
}

class Analyzer {
 public:
  Analyzer(const Graph& graph, const StorageMap& storages, const MemoryOptions& options, const PhaseMap* phases)
      : graph_(graph),
        storages_(storages),
        options_(options),
        values_(symbol_values(graph.module(), options.symbols)),
        lifetimes_(storages.num_buffers()),
        is_read_(storages.num_buffers(), false),
        last_reader_is_backward_(storages.num_buffers(), false),
        is_saved_(storages.num_buffers(), false),
        is_filled_(storages.num_buffers(), false),
        first_read_(storages.num_buffers(), Lifetime::kNever) {
    if (!options.derive_classes) return;
    if (phases == nullptr) own_phases_ = resolve_phases(graph, storages);
    phases_ = phases == nullptr ? &*own_phases_ : phases;
  }

  MemoryReport run() {
    end_ = graph_.num_nodes() == 0 ? 0 : static_cast<uint32_t>(graph_.num_nodes() - 1);
    first_call_ = end_;
    for (const NodeId node : graph_.nodes()) {
      if (!graph_[node].runs()) continue;
      first_call_ = graph_.position(node);
      break;
    }
    derive_roles();
    mark_outputs();
    for (size_t i = 0; i < lifetimes_.size(); ++i) start(BufferId(i));
    for (const NodeId node : graph_.nodes()) touch(node);
    find_ends();
    for (size_t i = 0; i < lifetimes_.size(); ++i) finish(BufferId(i));
    find_trained();
    split_stays();
    report_.lifetimes = std::move(lifetimes_);
    find_peaks();
    return std::move(report_);
  }

 private:
  void start(BufferId id) {
    const Buffer& buffer = storages_.buffer(id);
    Lifetime& life = lifetimes_[id.index()];
    life.buffer = id;
    if (buffer.source == BufferSource::kNode || arrives(buffer)) {
      life.first = life.last = life.released = graph_.position(buffer.producer);
    }
    const std::optional<int64_t> bytes = bytes_of(id);
    life.known = bytes.has_value();
    life.bytes = bytes.value_or(0);
    if (!life.known) add_unknown(buffer.producer);
  }

  // Whether the buffer is an input after the first call, which is live only from its place in the
  // schedule.
  bool arrives(const Buffer& buffer) const {
    return buffer.source == BufferSource::kPlaceholder && graph_.position(buffer.producer) > first_call_;
  }

  // Finds the inputs whose storage is freed after its last reader. Each placeholder on the storage
  // must be donated, or boxed and not kept between steps.
  void find_ends() {
    ends_.assign(lifetimes_.size(), true);
    for (size_t i = 0; i < lifetimes_.size(); ++i) {
      if (storages_.buffer(BufferId(i)).source != BufferSource::kPlaceholder) ends_[i] = false;
    }
    for (const NodeId node : placeholders_of(graph_)) {
      const bool is_boxed =
          options_.inputs == InputLifetime::kBoxed && !is_kept_by_caller(class_of_input(role_of(node)));
      if (is_boxed || is_donated(graph_, node)) continue;
      for_each_buffer(storages_.buffers(node), [&](BufferId id) { ends_[id.index()] = false; });
    }
  }

  InputRole role_of(NodeId placeholder) const {
    return report_.roles_derived ? derived_.get(placeholder) : recorded_role(graph_, placeholder);
  }

  // Sets the class, and the end of storages that the caller keeps or that have no reader.
  void finish(BufferId id) {
    const Buffer& buffer = storages_.buffer(id);
    Lifetime& life = lifetimes_[id.index()];
    life.kind = class_of(id);
    if (buffer.source == BufferSource::kNode) return;
    if (!ends_[id.index()] || !(is_read_[id.index()] || arrives(buffer))) life.last = life.released = end_;
  }

  // A call that sets the number of bytes of a storage.
  struct Resize {
    BufferId buffer;
    uint32_t place = 0;
    std::optional<int64_t> bytes;
  };

  std::vector<Resize> find_resizes() const {
    std::vector<Resize> resizes;
    for (const NodeId node : graph_.nodes()) {
      if (graph_.op(node).name != "inductor.resize_storage_bytes_.default") continue;
      const CallArgs args(graph_, node);
      const NodeId tensor = args[0].as_node();
      if (!tensor.is_valid()) continue;
      std::optional<int64_t> bytes = args[1].as_int();
      if (args[1].is_given() && args[1].given()->is(ArgKind::kExpr)) {
        bytes = graph_.module().exprs.evaluate(args[1].given()->as_expr(), values_);
      }
      const Value size = args[1].as_node().is_valid() ? graph_.value(args[1].as_node()) : Value();
      if (size.kind == ValueKind::kSymbolic) bytes = graph_.module().exprs.evaluate(ExprId(size.first), values_);
      if (bytes.has_value() && *bytes < 0) bytes.reset();
      for (const BufferId id : storages_.buffers(tensor)) {
        if (id.is_valid()) resizes.push_back({id, graph_.position(node), bytes});
      }
    }
    std::ranges::stable_sort(resizes, [](const Resize& a, const Resize& b) { return a.buffer < b.buffer; });
    return resizes;
  }

  // Adds a lifetime for each stay of a resized storage.
  void split_stays() {
    const std::vector<Resize> resizes = find_resizes();
    for (size_t i = 0; i < resizes.size();) {
      size_t end = i;
      while (end < resizes.size() && resizes[end].buffer == resizes[i].buffer) ++end;
      split_stays(std::span(resizes).subspan(i, end - i));
      i = end;
    }
  }

  void split_stays(std::span<const Resize> resizes) {
    const BufferId id = resizes.front().buffer;
    const Lifetime& whole = lifetimes_[id.index()];
    report_.resized.push_back(id);
    const bool is_made = storages_.buffer(id).source == BufferSource::kNode;
    const bool is_read_before = first_read_[id.index()] < resizes.front().place;
    bool is_there = is_made || is_read_before || resizes.front().bytes == 0;
    if (!whole.known && !is_there) forget_unknown(id);
    Lifetime stay = whole;
    const auto close = [&](uint32_t last) {
      if (!is_there) return;
      stay.last = last;
      stay.released = std::min(stay.released, last);
      report_.stays.push_back(stay);
    };
    for (const Resize& resize : resizes) {
      close(resize.place);
      is_there = resize.bytes != 0;
      stay.first = resize.place;
      stay.released = whole.released;
      stay.known = resize.bytes.has_value();
      stay.bytes = resize.bytes.value_or(0);
      if (!stay.known) add_unknown(storages_.buffer(id).producer);
    }
    close(whole.last);
  }

  void add_unknown(NodeId node) {
    ++report_.unknown_buffers;
    report_.unknown_nodes.push_back(node);
  }

  // The traced size of the storage is never used. Therefore the storage is not reported as a
  // storage of unknown size.
  void forget_unknown(BufferId id) {
    --report_.unknown_buffers;
    std::erase(report_.unknown_nodes, storages_.buffer(id).producer);
  }

  void find_trained() {
    std::ranges::sort(report_.gradients);
    std::vector<BufferId>& trained = report_.trained;
    if (trained.empty() && !gradients_.empty()) {
      for (const Lifetime& life : lifetimes_) trained.push_back(life.buffer);
    }
    std::erase_if(trained, [this](BufferId id) { return lifetimes_[id.index()].kind != MemoryClass::kParameter; });
    std::ranges::sort(trained);
    trained.erase(std::unique(trained.begin(), trained.end()), trained.end());
  }

  std::optional<int64_t> bytes_of(BufferId id) const {
    const SizeSource source = counted_size(graph_, storages_, id);
    if (source.kind != SizeKind::kLike) return evaluate_size(graph_.module(), source, values_);
    const Lifetime& like = lifetimes_[source.like.index()];
    return like.known ? std::optional<int64_t>(like.bytes) : std::nullopt;
  }

  void touch(NodeId node) {
    const uint32_t place = graph_.position(node);
    const NodeId wait = graph_.op(node).has(Effect::kCollective) ? last_wait(graph_, node) : NodeId();
    const uint32_t held = wait.is_valid() ? std::max(place, graph_.position(wait)) : place;
    const bool backward = is_backward(node);
    for (const BufferId id : storages_.reads(node)) {
      read(id, place, held, backward);
      if (storages_.reads_data(node)) first_read_[id.index()] = std::min(first_read_[id.index()], place);
    }
    for_each_buffer(storages_.buffers(node), [&](BufferId id) { hold(id, place, held, backward); });
    if (graph_.op(node).has(Effect::kCollective)) {
      for_each_buffer(storages_.writes(node), [&](BufferId id) { is_filled_[id.index()] = true; });
    }
    touch_elements(node);
    for (const ControlDep& dep : control_of(graph_, node)) {
      if (dep.kind != ControlKind::kKeepAlive) continue;
      for_each_buffer(storages_.buffers(dep.node), [&](BufferId id) { hold(id, place, place, false); });
    }
  }

  void read(BufferId id, uint32_t place, uint32_t held, bool backward) {
    hold(id, place, held, backward);
    is_read_[id.index()] = true;
    if (backward) last_reader_is_backward_[id.index()] = true;
  }

  // A tuple holds all its elements until its last getitem.
  void touch_elements(NodeId node) {
    uint32_t last = 0, last_in_forward = 0, first_in_backward = Lifetime::kNever;
    for (UseId use = graph_.first_use(node); use.is_valid(); use = graph_.use(use).next) {
      const NodeId user = graph_.use(use).user;
      if (graph_.op(user).view != ViewKind::kProjection) continue;
      const uint32_t place = graph_.position(user);
      last = std::max(last, place);
      if (is_backward(user)) {
        first_in_backward = std::min(first_in_backward, place);
      } else {
        last_in_forward = std::max(last_in_forward, place);
      }
    }
    if (last == 0) return;
    for_each_buffer(storages_.buffers(node), [&](BufferId id) {
      if (last_in_forward > 0) read(id, last_in_forward, last_in_forward, false);
      if (first_in_backward != Lifetime::kNever) {
        read(id, first_in_backward, first_in_backward, true);
        read(id, last, last, true);
      }
    });
  }

  // Extends the buffer's lifetime. The owner needs the buffer until `place`, and a collective needs
  // it until `held`. `backward` is true if the reader is in backward.
  void hold(BufferId id, uint32_t place, uint32_t held, bool backward) {
    Lifetime& life = lifetimes_[id.index()];
    life.released = std::max(life.released, place);
    life.last = std::max(life.last, held);
    if (backward) {
      life.read_in_backward = std::min(life.read_in_backward, place);
    } else {
      life.kept = std::max(life.kept, held);
    }
  }

  bool is_backward(NodeId node) const {
    return phases_ != nullptr ? phases_->is_backward(node) : graph_[node].phase == Phase::kBackward;
  }

  void derive_roles() {
    if (!options_.derive_classes && options_.inputs != InputLifetime::kBoxed) return;
    const bool has_inputs = std::ranges::any_of(
        graph_.nodes(), [this](NodeId node) { return recorded_role(graph_, node) != InputRole::kUnspecified; });
    if (has_inputs && !graph_.outputs.empty()) return;
    const RoleMap roles = infer_roles(graph_, storages_);
    report_.roles_derived = !has_inputs;
    if (!has_inputs) {
      for (const DerivedInput& input : roles.inputs) derived_[input.node] = input.role;
    }
    if (!graph_.outputs.empty()) return;
    for (const DerivedOutput& output : roles.outputs) {
      if (output.role == OutputRole::kGradient && output.node.is_valid()) add_gradient(output.node, output.of);
    }
  }

  // `of` is the placeholder of the parameter, or invalid if the parameter is unknown.
  void add_gradient(NodeId node, NodeId of) {
    const std::span<const BufferId> parameter = of.is_valid() ? storages_.buffers(of) : std::span<const BufferId>();
    for_each_buffer(storages_.buffers(node), [&](BufferId id) {
      gradients_.push_back(id);
      report_.gradients.emplace_back(id, parameter.empty() ? BufferId() : parameter.front());
    });
    if (!of.is_valid()) return;
    for_each_buffer(storages_.buffers(of), [&](BufferId id) { report_.trained.push_back(id); });
  }

  void mark_outputs() {
    if (graph_.outputs.empty()) return;
    const std::vector<NodeId> leaves = output_leaves(graph_);
    for (size_t i = 0; i < std::min(leaves.size(), graph_.outputs.size()); ++i) {
      const OutputSpec& output = graph_.outputs[i];
      if (!leaves[i].is_valid()) continue;
      if (output.role == OutputRole::kGradient) {
        add_gradient(leaves[i], output.of.is_valid() ? graph_.find(output.of) : NodeId());
      } else if (output.role == OutputRole::kSavedValue) {
        for_each_buffer(storages_.buffers(leaves[i]), [&](BufferId id) { is_saved_[id.index()] = true; });
      }
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
    if (is_saved_[id.index()]) return MemoryClass::kSavedValue;
    if (!is_backward(buffer.producer) && last_reader_is_backward_[id.index()]) return MemoryClass::kSavedValue;
    const Op& maker = graph_.op(buffer.producer);
    const bool is_made_for_it = is_filled_[id.index()] && maker.compute == ComputeClass::kFactory;
    if (maker.has(Effect::kCollective) || is_made_for_it) return MemoryClass::kCommunication;
    return MemoryClass::kTemporary;
  }

  const std::vector<BufferId>& sorted_gradients() {
    if (!gradients_sorted_) {
      std::ranges::sort(gradients_);
      gradients_sorted_ = true;
    }
    return gradients_;
  }

  // Bytes that become live or are freed at a place, with the number of the device.
  struct Change {
    uint32_t device = 0;
    int64_t bytes = 0;
  };
  struct Live {
    WideSum now = 0, most = 0, inputs = 0;
    NodeId node;  // the first node with `most`
  };

  // Whether the storage has bytes on a device, or belongs to a tensor of unknown size.
  bool is_on_device(const Lifetime& life) const {
    return life.bytes > 0 || (!life.known && storages_.buffer(life.buffer).value.is_valid());
  }

  // Finds the peaks of all devices in one walk, because there may be many devices.
  void find_peaks() {
    std::vector<uint32_t> begins(graph_.num_nodes() + 2, 0);  // first change by place
    report_.for_each_stay([&](const Lifetime& life) {
      if (!is_on_device(life)) return;
      ++begins[life.first + 1];
      ++begins[life.last + 2];
    });
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    std::vector<Change> changes(begins.back());
    std::vector<uint32_t> next(begins.begin(), begins.end() - 1);
    const NodeId first = graph_.num_nodes() == 0 ? NodeId() : *graph_.nodes().begin();
    std::vector<Live> devices;
    std::unordered_map<StringId, uint32_t> numbers;
    report_.for_each_stay([&](const Lifetime& life) {
      if (!is_on_device(life)) return;
      const Buffer& buffer = storages_.buffer(life.buffer);
      const uint32_t device = numbers.try_emplace(buffer.device, static_cast<uint32_t>(devices.size())).first->second;
      if (device == devices.size()) {
        devices.emplace_back().node = first;
        report_.devices.push_back({buffer.device, 0, NodeId(), 0});
      }
      const bool is_late = life.first > 0 && report_.is_resized(life.buffer);
      if (buffer.source != BufferSource::kNode && !is_late) devices[device].inputs += life.bytes;
      changes[next[life.first]++] = {device, life.bytes};
      changes[next[life.last + 1]++] = {device, -life.bytes};
    });
    find_most(begins, changes, devices);
    for (size_t i = 0; i < devices.size(); ++i) {
      DevicePeak& peak = report_.devices[i];
      peak.bytes = saturate(devices[i].most);
      peak.input_bytes = saturate(devices[i].inputs);
      peak.node = devices[i].node;
    }
    if (devices.empty() && report_.unknown_buffers > 0) report_.devices.push_back({StringId(), 0, first, 0});
    std::ranges::sort(report_.devices, [this](const DevicePeak& a, const DevicePeak& b) {
      if (a.bytes != b.bytes) return a.bytes > b.bytes;
      return graph_.module().text(a.device) < graph_.module().text(b.device);
    });
  }

  void find_most(const std::vector<uint32_t>& begins, const std::vector<Change>& changes,
                 std::vector<Live>& devices) const {
    size_t place = 0;
    for (const NodeId node : graph_.nodes()) {
      const std::span<const Change> here = std::span(changes).subspan(begins[place], begins[place + 1] - begins[place]);
      for (const Change& change : here) devices[change.device].now += change.bytes;
      for (const Change& change : here) {
        Live& live = devices[change.device];
        if (live.now <= live.most) continue;
        live.most = live.now;
        live.node = node;
      }
      ++place;
    }
  }

  const Graph& graph_;
  const StorageMap& storages_;
  const MemoryOptions& options_;
  SymbolValues values_;
  MemoryReport report_;
  std::vector<Lifetime> lifetimes_;
  std::vector<bool> is_read_, last_reader_is_backward_, is_saved_, is_filled_, ends_;
  std::vector<uint32_t> first_read_;  // place
  std::vector<BufferId> gradients_;
  bool gradients_sorted_ = false;
  std::optional<PhaseMap> own_phases_;
  const PhaseMap* phases_ = nullptr;  // nullptr: as stored
  IdMap<NodeId, InputRole> derived_;  // if no placeholder has a role
  uint32_t end_ = 0;
  uint32_t first_call_ = 0;  // the first call's place, or the last place if the graph has no call
};

}  // namespace

bool MemoryReport::is_resized(BufferId id) const { return std::ranges::binary_search(resized, id); }

std::string_view memory_class_name(MemoryClass value) {
  static constexpr std::string_view kNames[kNumMemoryClasses] = {
      "parameter",   "buffer",     "input",         "constant",  "optimizer state", "gradient",
      "saved value", "recomputed", "communication", "temporary", "workspace"};
  return kNames[static_cast<size_t>(value)];
}

MemoryReport analyze_memory(const Graph& graph, const StorageMap& storages, const MemoryOptions& options,
                            const PhaseMap* phases) {
  return Analyzer(graph, storages, options, phases).run();
}

}  // namespace fxopt
