#include "tests/ir/field_edits.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "fxgraph.pb.h"
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "ir/io/io.h"
#include "ir/io/pb_ids.h"
#include "tests/catch.h"
#include "tests/ir/sample_module.h"

namespace fxopt {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

namespace {

constexpr std::string_view kText = "edited";         // replaces any interned string
constexpr std::string_view kExpression = "s0 + 77";  // in its canonical form

std::string name_of(const FieldDescriptor& field) { return field.containing_type()->name() + "." + field.name(); }

bool is_text(const FieldDescriptor& field) {
  return field.options().GetExtension(schema::interned) || field.options().GetExtension(schema::expression);
}

uint32_t text_index(schema::Module& module, std::string_view text) {
  for (int i = 0; i < module.strings_size(); ++i) {
    if (module.strings(i) == text) return static_cast<uint32_t>(i);
  }
  module.add_strings(std::string(text));
  return static_cast<uint32_t>(module.strings_size() - 1);
}

void visit_below(const Message& message, const MessagePath& path,
                 const std::function<void(const MessagePath&)>& visit) {
  visit(path);
  std::vector<const FieldDescriptor*> fields;
  const Reflection& reflection = *message.GetReflection();
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->message_type() == nullptr) continue;
    if (!field->is_repeated()) visit_below(reflection.GetMessage(message, field), path.then(*field, -1), visit);
    for (int i = 0; field->is_repeated() && i < reflection.FieldSize(message, field); ++i) {
      visit_below(reflection.GetRepeatedMessage(message, field, i), path.then(*field, i), visit);
    }
  }
}

// ---- values

void set_scalar(schema::Module& module, Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.SetBool(&message, &field, true);
    case FieldDescriptor::CPPTYPE_INT64: {
      const uint64_t old = static_cast<uint64_t>(reflection.GetInt64(message, &field));
      return reflection.SetInt64(&message, &field, static_cast<int64_t>(old ^ 64));
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      uint64_t value = reflection.GetUInt64(message, &field) ^ 512;
      if (name_of(field) == "Tensor.storage") value = module.storages(1).id();
      return reflection.SetUInt64(&message, &field, value);
    }
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.SetString(&message, &field, reflection.GetString(message, &field) + '\x7F');
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.SetEnumValue(&message, &field, field.enum_type()->value(0)->number());
    default: {
      const bool is_expression = field.options().GetExtension(schema::expression);
      const uint32_t value = is_text(field) ? text_index(module, is_expression ? kExpression : kText)
                                            : reflection.GetUInt32(message, &field) ^ 1;
      return reflection.SetUInt32(&message, &field, value);
    }
  }
}

void set_default(Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.SetBool(&message, &field, false);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.SetInt64(&message, &field, 0);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.SetUInt64(&message, &field, 0);
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.SetString(&message, &field, "");
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.SetEnumValue(&message, &field, 0);
    default:
      return reflection.SetUInt32(&message, &field, 0);
  }
}

// Changes or appends an item of a repeated scalar.
void set_item(schema::Module& module, Message& message, const FieldDescriptor& field, bool append) {
  const Reflection& reflection = *message.GetReflection();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
    if (append) return reflection.AddInt64(&message, &field, 11);
    return reflection.SetRepeatedInt64(&message, &field, 0, reflection.GetRepeatedInt64(message, &field, 0) ^ 64);
  }
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) return reflection.AddEnumValue(&message, &field, 0);
  if (append) return reflection.AddUInt32(&message, &field, text_index(module, kText));
  reflection.SetRepeatedUInt32(&message, &field, 0, text_index(module, kText));
}

// An alternative's message that differs in meaning from its absence.
void fill_alternative(schema::Module& module, Message& message, const FieldDescriptor& field) {
  const std::string name = name_of(field);
  Message& added = *message.GetReflection()->MutableMessage(&message, &field);
  if (schema::ArgList* list = dynamic_cast<schema::ArgList*>(&added)) {
    for (int i = 0; name == "Arg.slice" && i < 3; ++i) list->add_items()->set_none(true);
  } else if (schema::IntList* ints = dynamic_cast<schema::IntList*>(&added)) {
    ints->add_values(-5);
  } else if (schema::Value* value = dynamic_cast<schema::Value*>(&added)) {
    value->set_none(true);
  } else if (schema::Arg* arg = dynamic_cast<schema::Arg*>(&added)) {
    arg->set_bool_value(true);
  } else if (schema::Symbolic* symbolic = dynamic_cast<schema::Symbolic*>(&added)) {
    symbolic->set_expr(text_index(module, kExpression));
  }
}

// ---- dependent fields

void rename_storage(Message& message, uint64_t from, uint64_t to) {
  if (schema::Tensor* tensor = dynamic_cast<schema::Tensor*>(&message)) {
    if (tensor->has_storage() && tensor->storage() == from) tensor->set_storage(to);
    return;
  }
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->message_type() == nullptr) continue;
    if (!field->is_repeated()) rename_storage(*message.GetReflection()->MutableMessage(&message, field), from, to);
    for (int i = 0; field->is_repeated() && i < message.GetReflection()->FieldSize(message, field); ++i) {
      rename_storage(*message.GetReflection()->MutableRepeatedMessage(&message, field, i), from, to);
    }
  }
}

// An argument without an alternative belongs to a newer schema; a copied node may hold one.
void fill_item(Message& item) {
  if (schema::Arg* arg = dynamic_cast<schema::Arg*>(&item)) {
    arg->Clear();
    arg->set_none(true);
  } else if (schema::MetaEntry* entry = dynamic_cast<schema::MetaEntry*>(&item)) {
    entry->mutable_value()->set_none(true);
  } else if (schema::NamedArg* named = dynamic_cast<schema::NamedArg*>(&item)) {
    named->mutable_arg()->set_none(true);
  } else if (schema::ArgItem* pair = dynamic_cast<schema::ArgItem*>(&item)) {
    pair->mutable_key()->set_none(true);
    pair->mutable_value()->set_none(true);
  } else if (schema::Node* node = dynamic_cast<schema::Node*>(&item)) {
    node->clear_args();
    node->clear_meta();
  }
}

// Gives the last copied item a fresh name, id or key, or the next index.
void refresh_copy(schema::Module& module, Message& message, const std::string& name) {
  const auto fresh = [&module] { return text_index(module, "zz_edited"); };
  if (name == "Module.graphs") {
    module.mutable_graphs()->rbegin()->set_name(fresh());
  } else if (name == "Graph.nodes") {
    static_cast<schema::Graph&>(message).mutable_nodes()->rbegin()->set_name(fresh());
  } else if (name == "Module.storages") {
    module.mutable_storages()->rbegin()->set_id(900);
  } else if (name == "Counters.names") {
    static_cast<schema::Counters&>(message).mutable_names()->rbegin()->set_base(fresh());
  } else if (name == "Node.kwargs") {
    static_cast<schema::Node&>(message).mutable_kwargs()->rbegin()->set_name(fresh());
  } else if (name.ends_with(".meta")) {
    const FieldDescriptor& field = *message.GetDescriptor()->FindFieldByName("meta");
    const int last = message.GetReflection()->FieldSize(message, &field) - 1;
    Message& entry = *message.GetReflection()->MutableRepeatedMessage(&message, &field, last);
    static_cast<schema::MetaEntry&>(entry).set_key(fresh());
  } else if (name == "Tensor.symbolic_sizes" || name == "Tensor.symbolic_strides") {
    schema::Tensor& tensor = static_cast<schema::Tensor&>(message);
    auto& entries =
        name == "Tensor.symbolic_sizes" ? *tensor.mutable_symbolic_sizes() : *tensor.mutable_symbolic_strides();
    entries.rbegin()->set_index(entries.rbegin()->index() + 1);
  }
}

// Sizes and strides come in pairs, and so do the keys and values of a dict.
std::vector<std::string> follow_count(Message& message, const std::string& name, bool append) {
  if (schema::Tensor* tensor = dynamic_cast<schema::Tensor*>(&message)) {
    auto& sizes = *tensor->mutable_sizes();
    auto& strides = *tensor->mutable_strides();
    auto& other = name == "Tensor.sizes" ? strides : sizes;
    if (other.empty() && name == "Tensor.sizes") return {};  // implied strides stay implied
    if (append) {
      other.Add(13);
    } else {
      other.RemoveLast();
    }
    return {name == "Tensor.sizes" ? "strides" : "sizes"};
  }
  schema::ValueDict& dict = static_cast<schema::ValueDict&>(message);
  if (name == "ValueDict.keys") {
    if (append) {
      dict.add_values()->set_none(true);
    } else {
      dict.mutable_values()->RemoveLast();
    }
    return {"values"};
  }
  if (append) {
    dict.add_keys(0);
  } else {
    dict.mutable_keys()->RemoveLast();
  }
  return {"keys"};
}

// Changes sibling fields that must follow an edit, after the edit.
std::vector<std::string> follow(schema::Module& module, Message& message, const FieldEdit& edit) {
  const std::string name = name_of(*edit.field);
  const bool changes_count = edit.kind == "append" || edit.kind == "remove";
  if (name.starts_with("Int.")) {
    message.GetReflection()->ClearField(
        &message, message.GetDescriptor()->FindFieldByName(name == "Int.value" ? "expr" : "value"));
    return {name == "Int.value" ? "expr" : "value"};
  }
  if (schema::Node* node = dynamic_cast<schema::Node*>(&message); node != nullptr && name == "Node.phase_markers") {
    auto& markers = *node->mutable_phase_markers();
    std::sort(markers.begin(), markers.end());
    markers.erase(std::unique(markers.begin(), markers.end()), markers.end());
  }
  if (changes_count && (name == "Tensor.sizes" || name == "Tensor.strides" || name.starts_with("ValueDict."))) {
    return follow_count(message, name, edit.kind == "append");
  }
  if (name == "Module.graphs" && edit.kind == "remove") {
    auto& counters = *module.mutable_counters()->mutable_names();
    const auto is_gone = [&module](const schema::NameCounter& entry) {
      return entry.graph() >= static_cast<uint32_t>(module.graphs_size());
    };
    counters.erase(std::remove_if(counters.begin(), counters.end(), is_gone), counters.end());
    return {"counters.names"};
  }
  if (name == "Tensor.storage" && edit.kind == "default") {
    module.add_storages()->set_id(0);
    return {"/storages"};
  }
  return {};
}

// ---- edits of repeated fields

bool edit_repeated(schema::Module& module, Message& message, const FieldEdit& edit) {
  const FieldDescriptor& field = *edit.field;
  const Reflection& reflection = *message.GetReflection();
  const int size = reflection.FieldSize(message, &field);
  const bool is_message = field.message_type() != nullptr;
  if (edit.kind == "append") {
    if (!is_message) {
      set_item(module, message, field, true);
    } else {
      Message& added = *reflection.AddMessage(&message, &field);
      if (size > 0) added.CopyFrom(reflection.GetRepeatedMessage(message, &field, size - 1));
      fill_item(added);
      refresh_copy(module, message, name_of(field));
    }
  } else if (size == 0) {
    return false;
  } else if (edit.kind == "remove") {
    reflection.RemoveLast(&message, &field);
  } else if (edit.kind == "swap") {
    if (size < 2) return false;
    const std::string before = message.SerializeAsString();
    reflection.SwapElements(&message, &field, 0, 1);
    return message.SerializeAsString() != before;
  } else if (edit.kind == "value") {
    set_item(module, message, field, false);
  } else {
    const int number = field.enum_type()->FindValueByName(edit.kind.substr(1))->number();
    if (reflection.GetRepeatedEnumValue(message, &field, 0) == number) return false;
    reflection.SetRepeatedEnumValue(&message, &field, 0, number);
  }
  return true;
}

bool edit_singular(schema::Module& module, Message& message, const FieldEdit& edit, bool is_offset) {
  const FieldDescriptor& field = *edit.field;
  const Reflection& reflection = *message.GetReflection();
  const bool is_present = reflection.HasField(message, &field);
  if (edit.kind == "chosen") {
    if (is_present || message.ByteSizeLong() == 0) return false;
    if (field.message_type() != nullptr) {
      fill_alternative(module, message, field);
    } else {
      set_scalar(module, message, field);
    }
    return true;
  }
  if (edit.kind == "absent") {
    reflection.ClearField(&message, &field);
    return is_present;
  }
  if (edit.kind == "empty") {
    if (is_present && reflection.GetMessage(message, &field).ByteSizeLong() == 0) return false;
    reflection.MutableMessage(&message, &field)->Clear();
    return true;
  }
  if (field.real_containing_oneof() != nullptr && !is_present) return false;
  if (name_of(field) == "Int.value" && edit.kind == "default" && is_offset) return false;  // equal to absence
  const std::string before = message.SerializeAsString();
  if (edit.kind == "value") {
    set_scalar(module, message, field);
  } else if (edit.kind == "default") {
    set_default(message, field);
  } else {
    const int number = field.enum_type()->FindValueByName(edit.kind.substr(1))->number();
    reflection.SetEnumValue(&message, &field, number);
  }
  return message.SerializeAsString() != before;
}

}  // namespace

std::string FieldEdit::name() const { return name_of(*field) + " " + kind; }

std::vector<FieldEdit> edits_of(const FieldDescriptor& field) {
  std::vector<FieldEdit> edits;
  const auto add = [&](const std::string& kind) { edits.push_back({&field, kind}); };
  const bool is_alternative = field.real_containing_oneof() != nullptr;
  if (is_alternative) add("chosen");
  if (field.is_repeated()) {
    for (const char* kind : {"append", "remove", "swap"}) add(kind);
  } else if (field.has_presence() && !is_alternative) {
    add("absent");
  }
  if (field.message_type() != nullptr) {
    if (!field.is_repeated() && !is_alternative) add("empty");
  } else if (field.enum_type() != nullptr) {
    for (int i = 0; i < field.enum_type()->value_count(); ++i) add("=" + field.enum_type()->value(i)->name());
  } else {
    add("value");
    if (!field.is_repeated()) add("default");
  }
  return edits;
}

MessagePath MessagePath::then(const FieldDescriptor& field, int index) const {
  MessagePath result = *this;
  result.steps_.push_back({&field, index});
  return result;
}

Message& MessagePath::in(schema::Module& module) const {
  Message* message = &module;
  for (const Step& step : steps_) {
    const Reflection& reflection = *message->GetReflection();
    message = step.index < 0 ? reflection.MutableMessage(message, step.field)
                             : reflection.MutableRepeatedMessage(message, step.field, step.index);
  }
  return *message;
}

std::string MessagePath::text() const {
  std::string text;
  for (const Step& step : steps_) {
    text += step.field->name() + (step.index < 0 ? "" : "[" + std::to_string(step.index) + "]") + ".";
  }
  return text;
}

std::string MessagePath::context() const {
  std::string text;
  for (const Step& step : steps_) text += step.field->name() + ".";
  return text;
}

void visit_messages(const schema::Module& module, const std::function<void(const MessagePath&)>& visit) {
  visit_below(module, MessagePath(), visit);
}

std::vector<std::string> apply_edit(schema::Module& module, const MessagePath& path, const FieldEdit& edit) {
  Message& message = path.in(module);
  const std::string prefix = path.text();
  const std::string name = name_of(*edit.field);
  const uint64_t old_id = name == "Storage.id" ? static_cast<schema::Storage&>(message).id() : 0;
  const bool done = edit.field->is_repeated()
                        ? edit_repeated(module, message, edit)
                        : edit_singular(module, message, edit, prefix.ends_with("tensor.offset."));
  if (!done) return {};
  std::vector<std::string> changes = {edit.field->real_containing_oneof() != nullptr ? prefix
                                                                                     : prefix + edit.field->name()};
  for (const std::string& sibling : follow(module, message, edit)) {
    changes.push_back(sibling.starts_with('/') ? sibling.substr(1) : prefix + sibling);
  }
  if (name == "Storage.id") {
    rename_storage(module, old_id, static_cast<schema::Storage&>(message).id());
    changes.emplace_back("*storage=");
  }
  return changes;
}

namespace {

// Adds a second item, all defaults, beside each record that is alone in its list, so that fields of
// the first one are absent there.
void add_second_records(schema::Module& module) {
  std::vector<MessagePath> paths;
  visit_messages(module, [&paths](const MessagePath& path) { paths.push_back(path); });
  for (const MessagePath& path : paths) {
    Message& message = path.in(module);
    const Descriptor& type = *message.GetDescriptor();
    const bool has_records = type.name() != "Arg" && type.name() != "Value" && type.name() != "Tensor" &&
                             type.name() != "Counters" && !type.name().ends_with("List") &&
                             !type.name().ends_with("Dict");
    for (int i = 0; has_records && i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      if (!field.is_repeated() || message.GetReflection()->FieldSize(message, &field) != 1) continue;
      if (field.message_type() == nullptr) {
        set_item(module, message, field, true);
      } else {
        fill_item(*message.GetReflection()->AddMessage(&message, &field));
        refresh_copy(module, message, name_of(field));
      }
    }
  }
}

void add_second_arguments(schema::Module& module, schema::Node& node) {
  schema::MetaEntry& entry = *node.add_meta();
  entry.set_key(text_index(module, "second"));
  schema::ArgList& list = *entry.mutable_value()->mutable_list();
  list.add_items()->set_layout(schema::LAYOUT_MKLDNN);
  list.add_items()->set_memory_format(schema::MEMORY_FORMAT_PRESERVE);
  schema::Symbolic& symbolic = *list.add_items()->mutable_value()->mutable_symbolic();
  symbolic.set_expr(text_index(module, kExpression));
}

void add_tensor(schema::Module& module, schema::Tensor& tensor) {
  for (const int64_t size : {0, 3, 0, 0, 0, 0, 5}) tensor.add_sizes(size);
  for (const int64_t stride : {0, 9, 0, 0, 0, 0, 4}) tensor.add_strides(stride);
  for (auto* entries : {tensor.mutable_symbolic_sizes(), tensor.mutable_symbolic_strides()}) {
    for (const uint32_t index : {2U, 4U}) {
      schema::SymbolicEntry& entry = *entries->Add();
      entry.set_index(index);
      entry.set_expr(text_index(module, "s0"));
    }
  }
}

}  // namespace

schema::Module make_editable_module() {
  schema::File file;
  REQUIRE(file.ParseFromString(*print_pb(*make_sample_module())));
  schema::Module module = file.module();
  module.mutable_rank()->set_rank(3);
  module.mutable_meshes(0)->set_shape(1, 3);
  // Gaps between the counters of names, and two counters of one graph.
  module.mutable_counters()->mutable_names(1)->set_base(text_index(module, "zz"));
  *module.mutable_counters()->add_names() = module.counters().names(1);
  module.mutable_counters()->mutable_names(1)->set_graph(0);
  module.mutable_counters()->mutable_names(1)->set_base(text_index(module, "y"));
  add_second_records(module);
  // A node whose records are present but empty, with sizes of 0 that a symbolic entry may replace.
  schema::Node& node = *module.mutable_graphs(1)->add_nodes();
  node.set_name(text_index(module, "second"));
  node.add_phase_markers(schema::PHASE_MARKER_IS_FORWARD);
  node.mutable_verdict();
  node.mutable_mark_verdict();
  node.mutable_tag_source();
  node.mutable_region();
  node.mutable_source();
  node.mutable_bucket();
  node.mutable_input();
  node.mutable_rng();
  add_tensor(module, *node.mutable_value()->mutable_tensor());
  add_second_arguments(module, node);
  spell_ids(module);
  return module;
}

}  // namespace fxopt
