// Works only on decoded messages and their descriptors. It shares nothing with the reader except
// the arithmetic of expressions and strides.
#include "tests/fuzz/normal_form.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "fxgraph.pb.h"
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include "core/bytes.h"
#include "ir/graph/module.h"
#include "ir/io/pb_wire.h"

namespace fxopt {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kMaxMessages = 512;

std::string unknown_of(const Message& message) {
  std::string bytes;
  message.GetReflection()->GetUnknownFields(message).SerializeToString(&bytes);
  return bytes;
}

// One line for each field that is set: its path and its value.
class NormalForm {
 public:
  explicit NormalForm(const schema::Module& module) : module_(module) {}

  std::vector<std::string> lines() {
    message("", module_);
    return std::move(lines_);
  }

 private:
  void message(const std::string& path, const Message& message);
  void field(const std::string& path, const Message& message, const FieldDescriptor& field);
  void submessage(const std::string& path, const Message& parent, const FieldDescriptor& field);
  void scalar(const std::string& path, const Message& message, const FieldDescriptor& field, int index);
  void number32(const std::string& path, uint32_t number, const FieldDescriptor& field);
  void ints(const std::string& path, const schema::IntList& list);
  void markers(const std::string& path, const schema::Node& node);
  void counters(const std::string& path, const schema::Counters& counters);
  bool says_nothing(const Message& message, const FieldDescriptor& field);
  std::string expression(std::string_view text);
  bool strides_follow(const schema::Tensor& tensor);
  template <class Numbers, class Entries>
  DimsId dims(const Numbers& numbers, const Entries& entries);
  std::string text(uint32_t index) const {
    return index < static_cast<uint32_t>(module_.strings_size()) ? module_.strings(static_cast<int>(index)) : "";
  }
  void add(const std::string& path, const std::string& what) { lines_.push_back(path + ": " + what); }

  const schema::Module& module_;
  Module scratch_;  // for expressions and strides
  std::vector<std::string> lines_;
};

std::string NormalForm::expression(std::string_view text) {
  const Result<ExprId> id = scratch_.exprs.parse(text);
  return id.ok() ? scratch_.exprs.to_string(*id) : std::string(text);
}

template <class Numbers, class Entries>
DimsId NormalForm::dims(const Numbers& numbers, const Entries& entries) {
  std::vector<Dim> result;
  for (const int64_t number : numbers) result.push_back(Dim{number, ExprId()});
  for (const schema::SymbolicEntry& entry : entries) {
    const Result<ExprId> id = scratch_.exprs.parse(text(entry.expr()));
    if (id.ok() && entry.index() < result.size()) result[entry.index()] = Dim{0, *id};
  }
  return scratch_.dims(result);
}

bool NormalForm::strides_follow(const schema::Tensor& tensor) {
  if (tensor.layout() != schema::LAYOUT_STRIDED) return false;
  const DimsId sizes = dims(tensor.sizes(), tensor.symbolic_sizes());
  return scratch_.contiguous_strides(sizes) == dims(tensor.strides(), tensor.symbolic_strides());
}

void NormalForm::number32(const std::string& path, uint32_t number, const FieldDescriptor& field) {
  const google::protobuf::FieldOptions& options = field.options();
  const bool is_optional = field.has_presence() || field.is_repeated();
  if (options.GetExtension(schema::interned)) {
    const std::string name = text(number);
    if (is_optional || !name.empty()) add(path, quote(name));
  } else if (options.GetExtension(schema::expression)) {
    add(path, expression(text(number)));
  } else {
    add(path, std::to_string(number));
  }
}

void NormalForm::scalar(const std::string& path, const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& reflection = *message.GetReflection();
  const bool many = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return add(path, reflection.GetBool(message, &field) ? "true" : "false");
    case FieldDescriptor::CPPTYPE_ENUM:
      return add(path, std::to_string(many ? reflection.GetRepeatedEnumValue(message, &field, index)
                                           : reflection.GetEnumValue(message, &field)));
    case FieldDescriptor::CPPTYPE_UINT32:
      return number32(
          path, many ? reflection.GetRepeatedUInt32(message, &field, index) : reflection.GetUInt32(message, &field),
          field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return add(path, std::to_string(reflection.GetUInt64(message, &field)));
    case FieldDescriptor::CPPTYPE_INT64:
      return add(path, std::to_string(many ? reflection.GetRepeatedInt64(message, &field, index)
                                           : reflection.GetInt64(message, &field)));
    default:
      return add(path, quote(many ? reflection.GetRepeatedString(message, &field, index)
                                  : reflection.GetString(message, &field)));
  }
}

// A packed list is equal to a list of integer arguments.
void NormalForm::ints(const std::string& path, const schema::IntList& list) {
  const size_t before = lines_.size();
  for (int i = 0; i < list.values_size(); ++i) {
    add(path + ".items[" + std::to_string(i) + "].int_value", std::to_string(list.values(i)));
  }
  const std::string unknown = unknown_of(list);
  if (!unknown.empty()) add(path + ".unknown", quote(unknown));
  if (lines_.size() == before) add(path, "{}");
}

// Markers are a set: order and repetition have no meaning.
void NormalForm::markers(const std::string& path, const schema::Node& node) {
  for (const int marker : std::set<int>(node.phase_markers().begin(), node.phase_markers().end())) {
    add(path, std::to_string(marker));
  }
}

// Sorts them as the schema requires, whatever their order in the file.
void NormalForm::counters(const std::string& path, const schema::Counters& counters) {
  add(path + ".next_uid", std::to_string(counters.next_uid()));
  add(path + ".next_storage", std::to_string(counters.next_storage()));
  std::set<std::string> names;
  for (const schema::NameCounter& name : counters.names()) {
    const std::string unknown = unknown_of(name);
    names.insert(std::to_string(name.graph()) + " " + quote(text(name.base())) + " " + std::to_string(name.next()) +
                 " " + quote(unknown));
  }
  for (const std::string& name : names) add(path + ".names", name);
  const std::string unknown = unknown_of(counters);
  if (!unknown.empty()) add(path + ".unknown", quote(unknown));
}

// Whether an empty message of this type is equal to a missing one.
bool may_be_missing(const FieldDescriptor& field) {
  if (field.containing_oneof() != nullptr) return false;
  return field.message_type() == schema::Int::descriptor() || field.message_type() == schema::Arg::descriptor() ||
         field.message_type() == schema::Value::descriptor();
}

void NormalForm::submessage(const std::string& path, const Message& parent, const FieldDescriptor& field) {
  const Message& child = parent.GetReflection()->GetMessage(parent, &field);
  if (child.GetDescriptor() == schema::IntList::descriptor()) {
    const std::string list = path.substr(0, path.rfind('.')) + (field.name() == "ints" ? ".list" : ".tuple");
    return ints(list, static_cast<const schema::IntList&>(child));
  }
  if (child.GetDescriptor() == schema::Counters::descriptor()) {
    return counters(path, static_cast<const schema::Counters&>(child));
  }
  const size_t before = lines_.size();
  message(path, child);
  if (lines_.size() == before && !may_be_missing(field)) add(path, "{}");
}

void NormalForm::field(const std::string& path, const Message& parent, const FieldDescriptor& field) {
  const Reflection& reflection = *parent.GetReflection();
  if (!field.is_repeated()) {
    if (field.message_type() != nullptr) return submessage(path, parent, field);
    return scalar(path, parent, field, 0);
  }
  for (int i = 0; i < reflection.FieldSize(parent, &field); ++i) {
    const std::string element = path + "[" + std::to_string(i) + "]";
    if (field.message_type() == nullptr) {
      scalar(element, parent, field, i);
      continue;
    }
    const size_t before = lines_.size();
    message(element, reflection.GetRepeatedMessage(parent, &field, i));
    if (lines_.size() == before) add(element, "{}");
  }
}

// The string table, and fields of a tensor that follow from the rest.
bool NormalForm::says_nothing(const Message& message, const FieldDescriptor& field) {
  if (message.GetDescriptor() == schema::Module::descriptor()) {
    return field.number() == schema::Module::kStringsFieldNumber;
  }
  if (message.GetDescriptor() != schema::Tensor::descriptor()) return false;
  const schema::Tensor& tensor = static_cast<const schema::Tensor&>(message);
  switch (field.number()) {
    case schema::Tensor::kStridesFieldNumber:
    case schema::Tensor::kSymbolicStridesFieldNumber:
      return strides_follow(tensor);
    case schema::Tensor::kOffsetFieldNumber:
      return tensor.offset().has_value() && tensor.offset().value() == 0 && unknown_of(tensor.offset()).empty();
    default:
      return false;
  }
}

void NormalForm::message(const std::string& path, const Message& message) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* item : fields) {
    if (says_nothing(message, *item)) continue;
    const std::string inner = path.empty() ? item->name() : path + "." + item->name();
    if (item->containing_type() == schema::Node::descriptor() &&
        item->number() == schema::Node::kPhaseMarkersFieldNumber) {
      markers(inner, static_cast<const schema::Node&>(message));
    } else {
      field(inner, message, *item);
    }
  }
  const std::string unknown = unknown_of(message);
  if (!unknown.empty()) add(path + ".unknown", quote(unknown));
}

// Fills in the ids that a message omits because they count up.
void fill_ids(schema::Module& module) {
  uint64_t next_storage = 0, next_uid = 0;
  for (schema::Storage& storage : *module.mutable_storages()) {
    if (!storage.has_id()) storage.set_id(next_storage);
    next_storage = storage.id() + 1;
  }
  for (schema::Graph& graph : *module.mutable_graphs()) {
    for (schema::Node& node : *graph.mutable_nodes()) {
      if (!node.has_uid()) node.set_uid(next_uid);
      next_uid = node.uid() + 1;
    }
  }
}

}  // namespace

std::string first_difference(std::string_view first, std::string_view second) {
  schema::Module a, b;
  if (!parse_message(a, first, kMaxMessages)) return "the first module does not decode";
  if (!parse_message(b, second, kMaxMessages)) return "the second module does not decode";
  if (!a.has_counters()) b.clear_counters();
  fill_ids(a);
  fill_ids(b);
  const std::vector<std::string> lines_a = NormalForm(a).lines();
  const std::vector<std::string> lines_b = NormalForm(b).lines();
  const auto [at_a, at_b] = std::mismatch(lines_a.begin(), lines_a.end(), lines_b.begin(), lines_b.end());
  if (at_a == lines_a.end() && at_b == lines_b.end()) return std::string();
  return (at_a == lines_a.end() ? "(end)" : *at_a) + "  against  " + (at_b == lines_b.end() ? "(end)" : *at_b);
}

}  // namespace fxopt
