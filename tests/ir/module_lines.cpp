#include "tests/ir/module_lines.h"

#include <algorithm>

#include "fxgraph.pb.h"
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

namespace fxopt {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

namespace {

// Index 0 is the empty string, which the table need not hold.
std::string text_at(const schema::Module& module, uint32_t index) {
  return index < static_cast<uint32_t>(module.strings_size()) ? module.strings(static_cast<int>(index)) : "";
}

std::string scalar_text(const schema::Module& module, const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& reflection = *message.GetReflection();
  const bool item = field.is_repeated();
  const bool is_text =
      field.options().GetExtension(schema::interned) || field.options().GetExtension(schema::expression);
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(message, &field) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_INT64:
      return std::to_string(item ? reflection.GetRepeatedInt64(message, &field, index)
                                 : reflection.GetInt64(message, &field));
    case FieldDescriptor::CPPTYPE_UINT64:
      return std::to_string(reflection.GetUInt64(message, &field));
    case FieldDescriptor::CPPTYPE_ENUM:
      return std::to_string(item ? reflection.GetRepeatedEnumValue(message, &field, index)
                                 : reflection.GetEnumValue(message, &field));
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.GetString(message, &field);
    default: {
      const uint32_t number =
          item ? reflection.GetRepeatedUInt32(message, &field, index) : reflection.GetUInt32(message, &field);
      return is_text ? "\"" + text_at(module, number) + "\"" : std::to_string(number);
    }
  }
}

void add_lines(const schema::Module& module, const Message& message, const std::string& prefix,
               std::vector<std::string>& lines) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->full_name() == "fxopt.schema.Module.strings") continue;
    const int count = field->is_repeated() ? message.GetReflection()->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const std::string path = prefix + field->name() + (field->is_repeated() ? "[" + std::to_string(i) + "]" : "");
      if (field->message_type() == nullptr) {
        lines.push_back(path + "=" + scalar_text(module, message, *field, i));
        continue;
      }
      lines.push_back(path + ".");
      add_lines(module,
                field->is_repeated() ? message.GetReflection()->GetRepeatedMessage(message, field, i)
                                     : message.GetReflection()->GetMessage(message, field),
                path + ".", lines);
    }
  }
}

}  // namespace

std::vector<std::string> module_lines(const schema::Module& module) {
  std::vector<std::string> lines;
  add_lines(module, module, "", lines);
  std::sort(lines.begin(), lines.end());
  return lines;
}

void pack_lists(Message& message) {
  if (schema::Arg* arg = dynamic_cast<schema::Arg*>(&message);
      arg != nullptr && (arg->has_list() || arg->has_tuple())) {
    const schema::ArgList list = arg->has_list() ? arg->list() : arg->tuple();
    const auto is_int = [](const schema::Arg& item) { return item.has_int_value(); };
    if (list.type() == 0 && !list.items().empty() && std::all_of(list.items().begin(), list.items().end(), is_int)) {
      schema::IntList& ints = arg->has_list() ? *arg->mutable_ints() : *arg->mutable_int_tuple();
      for (const schema::Arg& item : list.items()) ints.add_values(item.int_value());
    }
  }
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->message_type() == nullptr) continue;
    if (!field->is_repeated()) pack_lists(*message.GetReflection()->MutableMessage(&message, field));
    for (int i = 0; field->is_repeated() && i < message.GetReflection()->FieldSize(message, field); ++i) {
      pack_lists(*message.GetReflection()->MutableRepeatedMessage(&message, field, i));
    }
  }
}

}  // namespace fxopt
