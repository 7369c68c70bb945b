// Layers are distinguished by the first number in the module path. The schedule of the result, with
// C copies of layer k:
//
//   head params(k) params(k)'1 .. 'C ... forward(k) '1 .. 'C ... backward(k)'C .. '1 (k) ... output
//
// Copy i reads copy i - 1 wherever layer k reads layer k - 1. Its backward reads copy i + 1
// wherever backward of layer k reads layer k + 1. Only one node at a time is held as a message, so
// a million nodes need little memory.
#include "tests/bench/tiling.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fxgraph.pb.h"

#include "ir/io/pb_envelope.h"
#include "ir/io/pb_ids.h"
#include "ir/io/pb_wire.h"

namespace fxopt {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kMaxMessages = 256;
constexpr uint32_t kNone = UINT32_MAX;

// A range of neighbouring nodes of the schedule.
struct Window {
  uint32_t first = 0;
  uint32_t count = 0;

  uint32_t end() const { return first + count; }
  bool contains(uint32_t node) const { return node - first < count; }
};

// Copy `copy` of a node; 0 is the original.
struct Ref {
  uint32_t node = 0;
  uint32_t copy = 0;
};

Error refusal(std::string message) {
  return Error{ErrorCode::kUsage, "this graph cannot be tiled: " + std::move(message), std::string(), Where()};
}

// The first number that is a whole component of a module path, and the text before and after it.
struct Numbered {
  std::string_view before;
  uint32_t number = 0;
  std::string_view after;
};

std::optional<Numbered> split_path(std::string_view path) {
  for (size_t at = 0; at < path.size();) {
    const size_t dot = std::min(path.find('.', at), path.size());
    uint32_t number = 0;
    const std::from_chars_result read = std::from_chars(path.data() + at, path.data() + dot, number);
    if (read.ec == std::errc() && read.ptr == path.data() + dot) {
      return Numbered{path.substr(0, at), number, path.substr(dot)};
    }
    at = dot + 1;
  }
  return std::nullopt;
}

void list_storages(const schema::Value& value, std::vector<uint64_t>& to) {
  if (value.has_tensor() && value.tensor().has_storage()) to.push_back(value.tensor().storage());
  for (const schema::Value& item : value.tuple().items()) list_storages(item, to);
  for (const schema::Value& item : value.list().items()) list_storages(item, to);
  for (const schema::Value& item : value.dict().values()) list_storages(item, to);
}

class Tiler {
 public:
  explicit Tiler(schema::Module module) : in_(std::move(module)) {}

  std::optional<Error> prepare(uint64_t min_nodes);
  Result<Tiled> write();

 private:
  const schema::Node& node(uint32_t index) const { return in_.graphs(0).nodes(static_cast<int>(index)); }
  uint32_t num_nodes() const { return static_cast<uint32_t>(in_.graphs(0).nodes_size()); }
  const std::string& text(uint32_t string) const { return strings_[string]; }
  uint32_t intern(std::string text);

  uint32_t layer_of(const schema::Node& node) const;
  bool is_call(uint32_t index, uint32_t layer, bool backward) const;
  uint32_t find_call(uint32_t layer, bool backward) const;
  std::optional<Error> find_windows();
  bool are_alike(const Window& a, const Window& b) const;
  void index_storages();
  void index_names();
  void measure_sequence();

  bool in_tile(uint32_t node) const {
    return params_.contains(node) || forward_.contains(node) || backward_.contains(node);
  }
  Ref resolve(uint32_t to, uint32_t from, uint32_t copy) const;
  uint32_t position(Ref ref) const;
  uint64_t storage(uint64_t id);
  uint32_t renumber(uint32_t string);
  uint32_t shifted(uint32_t layer) const;

  void emit_window(const Window& window, uint32_t copy);
  void emit(uint32_t index, uint32_t copy);
  void rename(schema::Node& message);
  void move_sequence(schema::Node& message) const;
  void patch(Message& message);
  void patch_numbers(Message& message, const Reflection& reflection, const FieldDescriptor& field);
  void patch_message(Message& message);
  void add_gradients(schema::Node& output);
  std::string header() const;

  schema::Module in_;
  std::string prefix_;  // module paths up to the number
  uint32_t layer_ = 0;
  uint32_t copies_ = 0;
  Window params_, forward_, backward_;
  Window forward_before_, backward_before_;  // the neighbours that the layer reads
  int64_t first_seq_ = 0, end_seq_ = 0;      // the layer's forward

  std::vector<std::string> strings_;
  std::unordered_map<std::string, uint32_t> string_index_;
  std::unordered_map<uint64_t, uint32_t> renumbered_;  // (string, shift) -> string
  std::unordered_map<std::string, uint64_t> name_suffixes_;
  std::vector<uint32_t> param_names_;                  // for params_, copy by copy
  std::unordered_map<uint64_t, uint32_t> definers_;    // storage -> its first node
  std::unordered_map<uint64_t, uint64_t> storages_;    // (place in the input, copy) -> id
  std::unordered_map<uint64_t, uint32_t> storage_at_;  // id -> place in the input
  uint64_t next_storage_ = 0;
  uint64_t next_uid_ = 0;

  // The node being written: its index and copy.
  uint32_t from_ = 0;
  uint32_t copy_ = 0;

  uint64_t written_ = 0;
  std::string nodes_;           // serialized
  std::string added_storages_;  // serialized
  std::string outputs_;         // serialized
};

// ---- finding the layers

uint32_t Tiler::layer_of(const schema::Node& node) const {
  const bool is_input = node.kind() == schema::NODE_KIND_PLACEHOLDER;
  const std::optional<Numbered> path = split_path(text(is_input ? node.input().fqn() : node.module_path()));
  return path.has_value() ? path->number : kNone;
}

bool Tiler::is_call(uint32_t index, uint32_t layer, bool backward) const {
  const schema::Node& call = node(index);
  return call.kind() == schema::NODE_KIND_CALL_FUNCTION && (call.phase() == schema::PHASE_BACKWARD) == backward &&
         layer_of(call) == layer;
}

uint32_t Tiler::find_call(uint32_t layer, bool backward) const {
  for (uint32_t i = 0; i < num_nodes(); ++i) {
    if (is_call(i, layer, backward)) return i;
  }
  return kNone;
}

bool Tiler::are_alike(const Window& a, const Window& b) const {
  if (a.count != b.count) return false;
  for (uint32_t i = 0; i < a.count; ++i) {
    if (node(a.first + i).target() != node(b.first + i).target()) return false;
  }
  return true;
}

std::optional<Error> Tiler::find_windows() {
  uint32_t last = 0;
  for (const schema::Node& item : in_.graphs(0).nodes()) {
    const uint32_t layer = layer_of(item);
    if (layer == kNone) continue;
    if (item.has_module_path()) prefix_ = split_path(text(item.module_path()))->before;
    last = std::max(last, layer);
  }
  if (last < 2) return refusal("its module paths number fewer than three layers");
  layer_ = last / 2;
  std::vector<uint32_t> forward, backward;  // first calls of layers k - 1, k, k + 1
  for (uint32_t layer = layer_ - 1; layer <= layer_ + 1; ++layer) {
    forward.push_back(find_call(layer, false));
    backward.push_back(find_call(layer, true));
    if (forward.back() == kNone || backward.back() == kNone) {
      return refusal("layer " + std::to_string(layer) + " has no forward or no backward");
    }
  }
  if (!std::is_sorted(forward.begin(), forward.end()) || !std::is_sorted(backward.rbegin(), backward.rend())) {
    return refusal("its layers do not follow each other");
  }
  forward_before_ = Window{forward[0], forward[1] - forward[0]};
  forward_ = Window{forward[1], forward[2] - forward[1]};
  backward_before_ = Window{backward[2], backward[1] - backward[2]};
  backward_ = Window{backward[1], backward[0] - backward[1]};
  if (!are_alike(forward_before_, forward_) || !are_alike(backward_before_, backward_)) {
    return refusal("layer " + std::to_string(layer_) + " is unlike its neighbours");
  }
  for (uint32_t i = 0; i < num_nodes(); ++i) {
    if (node(i).kind() != schema::NODE_KIND_PLACEHOLDER || layer_of(node(i)) != layer_) continue;
    if (params_.count == 0) params_.first = i;
    if (params_.end() != i) return refusal("the parameters of a layer do not stand together");
    ++params_.count;
  }
  return std::nullopt;
}

void Tiler::index_storages() {
  for (int i = 0; i < in_.storages_size(); ++i) {
    storage_at_.emplace(in_.storages(i).id(), static_cast<uint32_t>(i));
    next_storage_ = std::max(next_storage_, in_.storages(i).id() + 1);
  }
  std::vector<uint64_t> found;
  for (uint32_t i = 0; i < num_nodes(); ++i) {
    found.clear();
    list_storages(node(i).value(), found);
    for (const uint64_t id : found) definers_.emplace(id, i);
  }
}

// "mm_12" is number 12 of the base "mm".
std::pair<std::string, uint64_t> split_name(const std::string& name) {
  const size_t end = name.find_last_not_of("0123456789");
  if (end == std::string::npos || name[end] != '_' || end + 1 == name.size() || end + 10 < name.size())
    return {name, 0};
  return {name.substr(0, end), std::stoull(name.substr(end + 1))};
}

void Tiler::index_names() {
  for (const schema::Node& item : in_.graphs(0).nodes()) {
    next_uid_ = std::max(next_uid_, item.uid() + 1);
    const auto [base, number] = split_name(text(item.name()));
    uint64_t& next = name_suffixes_[base];
    next = std::max(next, number + 1);
  }
}

void Tiler::measure_sequence() {
  first_seq_ = end_seq_ = INT64_MAX;
  for (uint32_t i = forward_.first; i < forward_.end(); ++i) {
    if (node(i).has_seq_nr()) first_seq_ = std::min(first_seq_, node(i).seq_nr());
  }
  for (uint32_t i = forward_.end(); i < num_nodes(); ++i) {
    if (node(i).has_seq_nr() && is_call(i, layer_ + 1, false)) end_seq_ = std::min(end_seq_, node(i).seq_nr());
  }
  if (end_seq_ == INT64_MAX) first_seq_ = end_seq_;  // nothing is shifted
}

std::optional<Error> Tiler::prepare(uint64_t min_nodes) {
  if (in_.graphs_size() != 1) return refusal("it holds " + std::to_string(in_.graphs_size()) + " graphs, not one");
  strings_.assign(in_.strings().begin(), in_.strings().end());
  for (size_t i = 0; i < strings_.size(); ++i) string_index_.emplace(strings_[i], static_cast<uint32_t>(i));
  if (std::optional<Error> error = find_windows()) return error;
  index_storages();
  index_names();
  measure_sequence();
  const uint64_t layer = uint64_t{params_.count} + forward_.count + backward_.count;
  const uint64_t missing = min_nodes > num_nodes() ? min_nodes - num_nodes() : 0;
  copies_ = static_cast<uint32_t>((missing + layer - 1) / layer);
  return std::nullopt;
}

// ---- resolving references

// Resolves the reference from copy `copy` of node `from` to node `to`.
Ref Tiler::resolve(uint32_t to, uint32_t from, uint32_t copy) const {
  if (!in_tile(from)) return Ref{to, forward_.contains(to) ? copies_ : 0};
  if (in_tile(to)) return Ref{to, copy};
  if (forward_before_.contains(to) && copy > 0) {
    return Ref{forward_.first + (to - forward_before_.first), copy - 1};
  }
  if (backward_before_.contains(to) && copy < copies_) {
    return Ref{backward_.first + (to - backward_before_.first), copy + 1};
  }
  return Ref{to, 0};
}

uint32_t Tiler::position(Ref ref) const {
  if (params_.contains(ref.node)) return ref.node + ref.copy * params_.count;
  uint32_t before = ref.node >= params_.first ? copies_ * params_.count : 0;
  if (forward_.contains(ref.node)) return ref.node + before + ref.copy * forward_.count;
  before += ref.node >= forward_.first ? copies_ * forward_.count : 0;
  if (backward_.contains(ref.node)) return ref.node + before + (copies_ - ref.copy) * backward_.count;
  return ref.node + before + (ref.node >= backward_.first ? copies_ * backward_.count : 0);
}

// The storage that replaces `id` in the node being written. It belongs to the copy to which the
// first node with `id` resolves.
uint64_t Tiler::storage(uint64_t id) {
  const uint32_t definer = definers_.at(id);
  const Ref ref = resolve(definer, from_, copy_);
  std::vector<uint64_t> here, there;
  list_storages(node(definer).value(), here);
  list_storages(node(ref.node).value(), there);
  const size_t place = static_cast<size_t>(std::find(here.begin(), here.end(), id) - here.begin());
  const uint64_t original = place < there.size() ? there[place] : id;
  if (ref.copy == 0) return original;
  const uint32_t at = storage_at_.at(original);
  const auto [found, is_new] = storages_.try_emplace((uint64_t{at} << 32) | ref.copy, next_storage_);
  if (is_new) {
    schema::Storage record = in_.storages(static_cast<int>(at));
    record.set_id(next_storage_++);
    append_bytes_field(added_storages_, schema::Module::kStoragesFieldNumber, record.SerializeAsString());
  }
  return found->second;
}

uint32_t Tiler::intern(std::string text) {
  const auto [found, is_new] = string_index_.try_emplace(std::move(text), static_cast<uint32_t>(strings_.size()));
  if (is_new) strings_.push_back(found->first);
  return found->second;
}

// The number of a layer in the result.
uint32_t Tiler::shifted(uint32_t layer) const {
  if (layer == layer_ && in_tile(from_)) return layer + copy_;
  return layer > layer_ ? layer + copies_ : layer;
}

uint32_t Tiler::renumber(uint32_t string) {
  const uint64_t key = (uint64_t{string} << 32) | shifted(layer_);
  const auto found = renumbered_.find(key);
  if (found != renumbered_.end()) return found->second;
  const std::optional<Numbered> path = split_path(text(string));
  uint32_t result = string;
  if (path.has_value() && path->before == prefix_ && shifted(path->number) != path->number) {
    result = intern(prefix_ + std::to_string(shifted(path->number)) + std::string(path->after));
  }
  renumbered_.emplace(key, result);
  return result;
}

// ---- writing

void Tiler::patch_numbers(Message& message, const Reflection& reflection, const FieldDescriptor& field) {
  const google::protobuf::FieldOptions& options = field.options();
  const bool is_string = options.GetExtension(schema::interned);
  const bool is_node = options.GetExtension(schema::node_index);
  if (!is_string && !is_node) return;
  const int size = field.is_repeated() ? reflection.FieldSize(message, &field) : 1;
  for (int i = 0; i < size; ++i) {
    const uint32_t old =
        field.is_repeated() ? reflection.GetRepeatedUInt32(message, &field, i) : reflection.GetUInt32(message, &field);
    const uint32_t value = is_node ? position(resolve(old, from_, copy_)) : renumber(old);
    if (field.is_repeated()) {
      reflection.SetRepeatedUInt32(&message, &field, i, value);
    } else {
      reflection.SetUInt32(&message, &field, value);
    }
  }
}

// Patches fields that hold a number but no index.
void Tiler::patch_message(Message& message) {
  if (message.GetDescriptor() == schema::Tensor::descriptor()) {
    schema::Tensor& tensor = static_cast<schema::Tensor&>(message);
    if (tensor.has_storage()) tensor.set_storage(storage(tensor.storage()));
  } else if (message.GetDescriptor() == schema::Region::descriptor()) {
    schema::Region& region = static_cast<schema::Region&>(message);
    if (region.has_id() && region.id() >= 0) region.set_id(shifted(static_cast<uint32_t>(region.id())));
  } else if (message.GetDescriptor() == schema::ArgItem::descriptor()) {
    schema::ArgItem& item = static_cast<schema::ArgItem&>(message);
    const bool is_region = item.key().has_string() && text(item.key().string()) == "ac_region_id";
    if (is_region && item.value().has_int_value() && item.value().int_value() >= 0) {
      item.mutable_value()->set_int_value(shifted(static_cast<uint32_t>(item.value().int_value())));
    }
  }
}

void Tiler::patch(Message& message) {
  patch_message(message);
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->message_type() == nullptr) {
      patch_numbers(message, reflection, *field);
    } else if (field->is_repeated()) {
      for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
        patch(*reflection.MutableRepeatedMessage(&message, field, i));
      }
    } else {
      patch(*reflection.MutableMessage(&message, field));
    }
  }
}

void Tiler::rename(schema::Node& message) {
  if (copy_ == 0) return;
  const bool names_itself = message.target() == message.name();
  const std::string base = split_name(text(message.name())).first;
  message.set_name(intern(base + "_" + std::to_string(name_suffixes_[base]++)));
  if (names_itself) message.set_target(message.name());
  if (params_.contains(from_)) param_names_.push_back(message.name());
  message.set_uid(next_uid_++);
}

void Tiler::move_sequence(schema::Node& message) const {
  if (!message.has_seq_nr()) return;
  const int64_t span = end_seq_ - first_seq_;
  if (message.seq_nr() >= end_seq_) {
    message.set_seq_nr(message.seq_nr() + span * copies_);
  } else if (message.seq_nr() >= first_seq_) {
    message.set_seq_nr(message.seq_nr() + span * copy_);
  }
}

void Tiler::emit(uint32_t index, uint32_t copy) {
  from_ = index;
  copy_ = copy;
  schema::Node message = node(index);
  patch(message);
  rename(message);
  move_sequence(message);
  if (message.kind() == schema::NODE_KIND_OUTPUT) add_gradients(message);
  append_bytes_field(nodes_, schema::Graph::kNodesFieldNumber, message.SerializeAsString());
  ++written_;
}

void Tiler::emit_window(const Window& window, uint32_t copy) {
  for (uint32_t i = window.first; i < window.end(); ++i) emit(i, copy);
}

// Adds the repeated layer's returned values and their specifications once for every copy.
void Tiler::add_gradients(schema::Node& output) {
  const schema::Arg& original = node(from_).args(0);
  schema::Arg& arg = *output.mutable_args(0);
  schema::ArgList& list = arg.has_tuple() ? *arg.mutable_tuple() : *arg.mutable_list();
  const schema::ArgList& leaves = original.has_tuple() ? original.tuple() : original.list();
  const google::protobuf::RepeatedPtrField<schema::OutputSpec>& specs = in_.graphs(0).outputs();
  for (schema::OutputSpec spec : specs) {
    patch(spec);
    append_bytes_field(outputs_, schema::Graph::kOutputsFieldNumber, spec.SerializeAsString());
  }
  std::unordered_map<uint32_t, uint32_t> params;  // name -> place in the layer
  for (uint32_t i = 0; i < params_.count; ++i) params.emplace(node(params_.first + i).name(), i);
  const uint32_t leaf_from = backward_.first;  // specifications are renumbered as in the copy
  for (uint32_t copy = 1; copy <= copies_; ++copy) {
    for (int i = 0; i < leaves.items_size(); ++i) {
      if (!leaves.items(i).has_node() || !backward_.contains(leaves.items(i).node())) continue;
      list.add_items()->set_node(position(Ref{leaves.items(i).node(), copy}));
      if (i >= specs.size()) continue;
      schema::OutputSpec spec = specs[i];
      const auto param = params.find(spec.of());
      from_ = leaf_from;
      copy_ = copy;
      patch(spec);
      if (param != params.end()) spec.set_of(param_names_[(copy - 1) * params_.count + param->second]);
      append_bytes_field(outputs_, schema::Graph::kOutputsFieldNumber, spec.SerializeAsString());
    }
  }
}

// The module without strings, storages, graphs and counters.
std::string Tiler::header() const {
  schema::Module module = in_;
  module.clear_strings();
  module.clear_storages();
  module.clear_graphs();
  module.clear_counters();
  return module.SerializeAsString();
}

Result<Tiled> Tiler::write() {
  emit_window(Window{0, params_.first}, 0);
  for (uint32_t copy = 0; copy <= copies_; ++copy) emit_window(params_, copy);
  emit_window(Window{params_.end(), forward_.first - params_.end()}, 0);
  for (uint32_t copy = 0; copy <= copies_; ++copy) emit_window(forward_, copy);
  emit_window(Window{forward_.end(), backward_.first - forward_.end()}, 0);
  for (uint32_t copy = copies_ + 1; copy-- > 0;) emit_window(backward_, copy);
  emit_window(Window{backward_.end(), num_nodes() - backward_.end()}, 0);

  schema::Graph rest = in_.graphs(0);
  rest.clear_nodes();
  rest.clear_outputs();
  rest.clear_in_spec();
  rest.clear_out_spec();
  std::string graph = rest.SerializeAsString();
  PbCounts counts{1, written_, strings_.size(), static_cast<uint64_t>(in_.storages_size()) + storages_.size()};
  std::vector<std::string> parts(4);
  for (const std::string& item : strings_) append_bytes_field(parts[0], schema::Module::kStringsFieldNumber, item);
  parts[0] += header();
  append_bytes_header(parts[0], schema::Module::kGraphsFieldNumber, graph.size() + nodes_.size() + outputs_.size());
  parts[0] += graph;
  parts[1] = std::move(nodes_);
  parts[2] = std::move(outputs_);
  for (const schema::Storage& item : in_.storages()) {
    append_bytes_field(parts[3], schema::Module::kStoragesFieldNumber, item.SerializeAsString());
  }
  parts[3] += added_storages_;
  Result<std::string> pb = write_envelope(counts, std::move(parts));
  if (!pb.ok()) return std::move(pb).error();
  Tiled result;
  result.pb = std::move(*pb);
  result.layer = layer_;
  result.copies = copies_;
  result.layer_nodes = params_.count + forward_.count + backward_.count;
  result.nodes = written_;
  return result;
}

}  // namespace

Result<Tiled> tile(std::string_view pb, uint64_t min_nodes) {
  const Result<PbEnvelope> envelope = read_envelope(pb);
  if (!envelope.ok()) return envelope.error();
  schema::Module module;
  if (!parse_message(module, envelope->module, kMaxMessages)) {
    return explain_parse_failure(envelope->module, *module.GetDescriptor(), envelope->module_offset, kMaxMessages);
  }
  spell_ids(module);
  Tiler tiler(std::move(module));
  if (std::optional<Error> error = tiler.prepare(min_nodes)) return *std::move(error);
  return tiler.write();
}

}  // namespace fxopt
