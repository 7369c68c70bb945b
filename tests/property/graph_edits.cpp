#include "tests/property/graph_edits.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "ir/values/values.h"

namespace fxopt {
namespace {

constexpr const char* kRegressionNames[kNumRegressions] = {"grow",        "grow and rename", "move the peak",
                                                           "late reader", "new node",        "lost checkpoint"};
constexpr const char* kNeutralNames[kNumNeutralEdits] = {"rename all",   "rename some",     "swap",
                                                         "insert alias", "remove identity", "metadata"};
constexpr std::array<std::string_view, 3> kIdentities = {"aten.alias.default", "aten.detach.default",
                                                         "aten.view.default"};

// Dense in row-major order with known sizes: it can grow in its first dimension without another
// change.
bool can_grow(const Module& module, const Tensor& tensor) {
  if (tensor.layout != Layout::kStrided || !tensor.sizes.is_valid() || !tensor.strides.is_valid()) return false;
  if (!(tensor.offset == Dim{}) || module.dims(tensor.sizes).empty()) return false;
  int64_t stride = 1;
  const std::vector<Dim>& sizes = module.dims(tensor.sizes);
  const std::vector<Dim>& strides = module.dims(tensor.strides);
  for (size_t i = sizes.size(); i-- > 0;) {
    if (!sizes[i].is_static() || !strides[i].is_static() || sizes[i].value < 1 || strides[i].value != stride) {
      return false;
    }
    stride *= sizes[i].value;
  }
  return true;
}

}  // namespace

const char* regression_name(Regression kind) { return kRegressionNames[static_cast<size_t>(kind)]; }
const char* neutral_edit_name(NeutralEdit kind) { return kNeutralNames[static_cast<size_t>(kind)]; }

GraphEditor::GraphEditor(Module& module, uint64_t seed)
    : module_(module),
      graph_(module.main()),
      random_(seed),
      storages_(graph_),
      report_(analyze_memory(graph_, storages_)),
      trace_(trace_memory(graph_, storages_, report_, report_.devices.front().device, {}, {})),
      live_(timeline_of(trace_).ideal),
      peak_(report_.devices.front().bytes) {
  peak_place_ = static_cast<uint32_t>(std::max_element(live_.begin(), live_.end()) - live_.begin());
  peak_node_ = graph_.name_of(trace_.schedule[peak_place_]);
}

std::optional<std::string> GraphEditor::apply(Regression kind) {
  if (kind == Regression::kMovePeak) return move_peak();
  if (kind == Regression::kLateReader) return add_late_reader();
  if (kind == Regression::kNewNode) return add_large_node();
  if (kind == Regression::kLostCheckpoint) return lose_checkpoint();
  const std::optional<std::string> grown = grow_at_peak();
  if (!grown.has_value() || kind == Regression::kGrow) return grown;
  const NodeId node = graph_.find(module_.intern(*grown));
  rename(true);
  return std::string(graph_.name_of(node));
}

bool GraphEditor::apply(NeutralEdit kind) {
  if (kind == NeutralEdit::kSwap) return swap();
  if (kind == NeutralEdit::kInsertAlias) return insert_alias();
  if (kind == NeutralEdit::kRemoveIdentity) return remove_identity();
  if (kind == NeutralEdit::kMetadata) {
    add_metadata();
  } else {
    rename(kind == NeutralEdit::kRenameAll);
  }
  return true;
}

// A random growth from slightly above 0.1 % to 5 % of the peak.
int64_t GraphEditor::growth() {
  const double fraction = 0.0011 + 0.0489 * static_cast<double>(below(1 << 20)) / (1 << 20);
  return static_cast<int64_t>(fraction * static_cast<double>(peak_)) + 1;
}

// Produced on the traced device by a node with a single result.
bool GraphEditor::is_cause(const Lifetime& lifetime) const {
  const Buffer& buffer = storages_.buffer(lifetime.buffer);
  return lifetime.known && buffer.source == BufferSource::kNode && buffer.device == trace_.device &&
         single_tensor(graph_, buffer.producer) != nullptr;
}

std::vector<Lifetime> GraphEditor::shuffled_causes() {
  std::vector<Lifetime> list;
  for (const Lifetime& lifetime : report_.lifetimes) {
    if (is_cause(lifetime)) list.push_back(lifetime);
  }
  for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[below(i)]);
  return list;
}

std::vector<NodeId> GraphEditor::shuffled_nodes() {
  std::vector<NodeId> list = trace_.schedule;
  for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[below(i)]);
  return list;
}

// Grows the tensor by at least `bytes`, plus at most a tenth of the peak.
bool GraphEditor::grow(NodeId node, int64_t bytes) {
  Tensor& tensor = graph_.pool().tensor(graph_.pool().value(graph_[node].value));
  if (!can_grow(module_, tensor)) return false;
  std::vector<Dim> sizes = module_.dims(tensor.sizes);
  const int64_t row = module_.dims(tensor.strides).front().value * element_size(tensor.dtype);
  const int64_t rows = (bytes + row - 1) / row;
  if (rows * row > bytes + peak_ / 10) return false;
  const Tensor before = tensor;
  sizes.front().value += rows;
  tensor.sizes = module_.dims(sizes);
  tensor.storage = StorageId();  // the recorded one is too small
  if (StorageMap(graph_).num_buffers() == storages_.num_buffers()) return true;
  tensor = before;  // a reshape of it would now copy
  return false;
}

std::optional<std::string> GraphEditor::grow_at_peak() {
  for (const Lifetime& lifetime : shuffled_causes()) {
    const NodeId node = storages_.buffer(lifetime.buffer).producer;
    if (lifetime.first > peak_place_ || lifetime.last < peak_place_ || !grow(node, growth())) continue;
    return std::string(graph_.name_of(node));
  }
  return std::nullopt;
}

std::optional<std::string> GraphEditor::move_peak() {
  for (const Lifetime& lifetime : shuffled_causes()) {
    if (lifetime.first <= peak_place_ && peak_place_ <= lifetime.last) continue;
    const int64_t most = *std::max_element(live_.begin() + lifetime.first, live_.begin() + lifetime.last + 1);
    const NodeId node = storages_.buffer(lifetime.buffer).producer;
    if (grow(node, peak_ - most + growth())) return std::string(graph_.name_of(node));
  }
  return std::nullopt;
}

NodeId GraphEditor::call_before(NodeId before, const std::string& target, const std::vector<Arg>& args) {
  const NodeId node = graph_.insert_node(before, NodeKind::kCallFunction, "edited", module_.target(target));
  graph_.set_args(node, graph_.pool().append(args), {});
  graph_[node].phase = graph_[before].phase;
  return node;
}

// Adds a consumer of `node` with a result of a few bytes, and a consumer of that result.
void GraphEditor::read_before(NodeId before, NodeId node) {
  Tensor scalar;
  scalar.dtype = DType::kFloat32;
  scalar.device = trace_.device;
  scalar.sizes = scalar.strides = module_.dims(std::vector<Dim>());
  NodeId read = node;
  for (const char* target : {"aten.sum.default", "aten.neg.default"}) {
    read = call_before(before, target, {Arg::node(read)});
    graph_[read].value = graph_.pool().append_value(graph_.pool().tensor_value(scalar));
  }
}

NodeId GraphEditor::any_behind_peak() {
  return trace_.schedule[peak_place_ + 1 + below(trace_.schedule.size() - peak_place_ - 1)];
}

std::optional<std::string> GraphEditor::add_late_reader() {
  for (const Lifetime& lifetime : shuffled_causes()) {
    const NodeId node = storages_.buffer(lifetime.buffer).producer;
    if (!is_plain(node) || lifetime.last >= peak_place_ || lifetime.bytes <= peak_ / 900) continue;
    read_before(any_behind_peak(), node);
    return std::string(graph_.name_of(node));
  }
  return std::nullopt;
}

std::optional<std::string> GraphEditor::add_large_node() {
  const auto input = std::find_if(trace_.schedule.begin(), trace_.schedule.end(), [this](NodeId node) {
    const Tensor* tensor = graph_[node].kind == NodeKind::kPlaceholder ? single_tensor(graph_, node) : nullptr;
    return tensor != nullptr && tensor->device == trace_.device;
  });
  uint32_t place = peak_place_ - static_cast<uint32_t>(below(peak_place_));
  while (place < peak_place_ && !graph_[trace_.schedule[place]].is_call()) ++place;
  if (input == trace_.schedule.end() || !graph_[trace_.schedule[place]].is_call()) return std::nullopt;
  const Arg size = Arg::integer(growth());
  const ArgRange sizes = graph_.pool().append(std::span(&size, 1));
  const NodeId node = call_before(trace_.schedule[place], "aten.new_empty.default",
                                  {Arg::node(*input), Arg::children(ArgKind::kList, sizes)});
  Tensor tensor;
  tensor.dtype = DType::kUint8;
  tensor.device = trace_.device;
  tensor.sizes = module_.dims({Dim{size.as_int(), {}}});
  tensor.strides = module_.contiguous_strides(tensor.sizes);
  graph_[node].value = graph_.pool().append_value(graph_.pool().tensor_value(tensor));
  read_before(any_behind_peak(), node);
  return std::string(graph_.name_of(node));
}

std::optional<std::string> GraphEditor::lose_checkpoint() {
  std::map<uint64_t, Lifetime> by_uid;
  for (const Lifetime& lifetime : shuffled_causes()) {
    by_uid[graph_[storages_.buffer(lifetime.buffer).producer].uid] = lifetime;
  }
  for (const NodeId copy : shuffled_nodes()) {
    const NodeExtra* extra = graph_.extra(copy);
    if (extra == nullptr || extra->origins.empty()) continue;
    const Origin& origin = extra->origins.front();
    const auto found = by_uid.find(origin.uid);
    if (origin.kind != OriginKind::kRecomputed || found == by_uid.end() || !by_uid.contains(graph_[copy].uid)) continue;
    if (found->second.last >= peak_place_ || found->second.bytes <= peak_ / 900) continue;
    const NodeId original = storages_.buffer(found->second.buffer).producer;
    if (!is_plain(original)) continue;  // a collective would also hold its input
    for (const NodeId reader : graph_.users(copy)) {
      if (graph_.position(reader) < peak_place_) continue;
      for (const UseId use : graph_.edges(reader)) {
        if (graph_.use(use).input == copy) graph_.set_use(use, original);
      }
      return std::string(graph_.name_of(original));
    }
  }
  return std::nullopt;
}

void GraphEditor::rename(bool all) {
  for (const NodeId node : trace_.schedule) {
    if (all || below(3) == 0) graph_.rename(node, graph_.fresh_name("renamed"));
  }
}

// An aten call without in-place writes or control dependencies: only its inputs and outputs
// determine its memory.
bool GraphEditor::is_plain(NodeId node) const {
  const NodeExtra* extra = graph_.extra(node);
  const std::string_view target = graph_[node].is_call() ? std::string_view(graph_.op(node).name) : "";
  return target.starts_with("aten.") && storages_.writes(node).empty() && (extra == nullptr || extra->control.empty());
}

bool GraphEditor::can_swap(NodeId first, NodeId second) const {
  if (!is_plain(first) || !is_plain(second)) return false;
  const std::vector<NodeId> inputs = graph_.inputs(second);
  if (std::find(inputs.begin(), inputs.end(), first) != inputs.end()) return false;
  int64_t made = 0;
  for (const BufferId buffer : storages_.buffers(second)) {
    if (buffer.is_valid() && storages_.buffer(buffer).producer == second) {
      made += report_.lifetimes[buffer.index()].bytes;
    }
  }
  return live_[graph_.position(first)] + made <= peak_;  // upper bound of bytes live between them
}

bool GraphEditor::swap() {
  for (const NodeId first : shuffled_nodes()) {
    const NodeId second = graph_.next(first);
    if (!second.is_valid() || !can_swap(first, second)) continue;
    graph_.move_before(second, first);
    return true;
  }
  return false;
}

bool GraphEditor::insert_alias() {
  for (const NodeId reader : shuffled_nodes()) {
    const NodeId input = is_plain(reader) ? first_argument(graph_, reader) : NodeId();
    const Tensor* tensor = input.is_valid() && is_plain(input) ? single_tensor(graph_, input) : nullptr;
    if (tensor == nullptr || tensor->layout != Layout::kStrided) continue;
    const std::vector<Dim> sizes = module_.dims(tensor->sizes);
    if (!std::all_of(sizes.begin(), sizes.end(), [](const Dim& dim) { return dim.is_static(); })) continue;
    const std::string_view target = kIdentities[below(kIdentities.size())];
    std::vector<Arg> args = {Arg::node(input)};
    if (target == "aten.view.default") {
      std::vector<Arg> list;
      for (const Dim& size : sizes) list.push_back(Arg::integer(size.value));
      args.push_back(Arg::children(ArgKind::kList, graph_.pool().append(list)));
    }
    const NodeId alias = call_before(reader, std::string(target), args);
    graph_[alias].value = graph_.pool().copy_value(graph_.pool(), graph_[input].value, [](Tensor&) {});
    for (const UseId use : graph_.edges(reader)) {
      if (graph_.use(use).input == input) graph_.set_use(use, alias);
    }
    return true;
  }
  return false;
}

bool GraphEditor::is_identity(NodeId node) const {
  if (!is_plain(node) || std::find(kIdentities.begin(), kIdentities.end(), graph_.op(node).name) == kIdentities.end()) {
    return false;
  }
  const NodeId input = first_argument(graph_, node);
  return input.is_valid() && is_plain(input) && same_metadata(graph_, graph_[input].value, graph_[node].value);
}

bool GraphEditor::remove_identity() {
  for (const NodeId node : shuffled_nodes()) {
    if (!is_identity(node)) continue;
    graph_.replace_all_uses(node, first_argument(graph_, node));
    graph_.erase(node);
    return true;
  }
  return false;
}

void GraphEditor::add_metadata() {
  for (const NodeId node : trace_.schedule) {
    if (below(4) != 0) continue;
    const std::span<const Arg> old = graph_.pool().args(graph_[node].meta);
    std::vector<Arg> entries(old.begin(), old.end());
    entries.push_back(Arg::string(module_.intern("edited_" + std::to_string(below(100)))));
    entries.push_back(Arg::integer(static_cast<int64_t>(below(1000))));
    graph_.set_meta(node, graph_.pool().append(entries));
  }
}

}  // namespace fxopt
