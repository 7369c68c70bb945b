// Prints the binary form as JSON, with one node on each line. The printer visits all fields by
// reflection, so no content of the binary form can be missing.
#include <unordered_map>
#include <utility>
#include <vector>

#include "fxgraph.pb.h"
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>
#include <nlohmann/json.hpp>

#include "core/bytes.h"
#include "core/check.h"
#include "ir/io/io.h"
#include "ir/io/json.h"
#include "ir/io/pb_envelope.h"
#include "ir/io/pb_ids.h"
#include "ir/io/pb_wire.h"

namespace fxopt {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// A JSON reader that uses binary64 for all numbers would round larger integers.
constexpr int64_t kExact = int64_t{1} << 53;
constexpr int kMaxMessages = 1024;  // a printed module already has bounded depth

class JsonPrinter {
 public:
  explicit JsonPrinter(const schema::Module& module) : module_(module) {}

  std::string print() {
    out_ = "{\"version\":" + std::to_string(kPbVersion) + ",\"module\":";
    object(module_);
    out_ += "}\n";
    return std::move(out_);
  }

 private:
  void object(const Message& message);
  void items(const Message& message, const FieldDescriptor& field, bool on_lines);
  void value(const Message& message, const FieldDescriptor& field);
  void item(const Message& message, const FieldDescriptor& field, int index);
  void from_uint32(uint32_t value, const FieldDescriptor& field);
  void from_enum(int value, const FieldDescriptor& field);
  void hex(uint64_t bits);
  template <class Number>
  void number(Number value, bool is_exact);
  void int64(int64_t value) { number(value, value > -kExact && value < kExact); }
  void uint64(uint64_t value) { number(value, value < static_cast<uint64_t>(kExact)); }
  void text(uint32_t index) { out_ += json_string(module_.strings(static_cast<int>(index))); }
  void quoted(std::string_view plain) { ((out_ += '"') += plain) += '"'; }

  const schema::Module& module_;
  const schema::Graph* graph_ = nullptr;
  std::string out_;
};

void JsonPrinter::hex(uint64_t bits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out_ += "\"0x";
  for (int shift = 60; shift >= 0; shift -= 4) out_ += kDigits[(bits >> shift) & 0xFU];
  out_ += '"';
}

template <class Number>
void JsonPrinter::number(Number value, bool is_exact) {
  if (is_exact) {
    out_ += std::to_string(value);
  } else {
    quoted(std::to_string(value));
  }
}

void JsonPrinter::object(const Message& message) {
  const bool is_graph = message.GetDescriptor() == schema::Graph::descriptor();
  const bool on_lines = is_graph || &message == &module_;
  if (is_graph) graph_ = static_cast<const schema::Graph*>(&message);
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  out_ += '{';
  std::string_view separator;
  for (const FieldDescriptor* field : fields) {
    if (field->type() == FieldDescriptor::TYPE_STRING) continue;  // the table
    out_ += std::exchange(separator, on_lines ? ",\n" : ",");
    quoted(field->name());
    out_ += ':';
    field->is_repeated() ? items(message, *field, on_lines) : value(message, *field);
  }
  const google::protobuf::UnknownFieldSet& unknown = message.GetReflection()->GetUnknownFields(message);
  if (!unknown.empty()) {
    std::string bytes;
    unknown.SerializeToString(&bytes);
    out_ += separator;
    quoted(kJsonUnknown);
    out_ += ':';
    quoted(to_base64(bytes));
  }
  out_ += '}';
}

void JsonPrinter::items(const Message& message, const FieldDescriptor& field, bool on_lines) {
  const int size = message.GetReflection()->FieldSize(message, &field);
  out_ += '[';
  for (int i = 0; i < size; ++i) {
    if (i > 0) out_ += ',';
    if (on_lines) out_ += '\n';
    item(message, field, i);
  }
  out_ += on_lines ? "\n]" : "]";
}

void JsonPrinter::from_uint32(uint32_t value, const FieldDescriptor& field) {
  switch (json_kind(field)) {
    case JsonKind::kText:
      return text(value);
    case JsonKind::kNode:
      FXOPT_CHECK(graph_ != nullptr, "node reference outside of a graph");
      return text(graph_->nodes(static_cast<int>(value)).name());
    default:
      return uint64(value);
  }
}

void JsonPrinter::from_enum(int value, const FieldDescriptor& field) {
  const google::protobuf::EnumValueDescriptor* known = field.enum_type()->FindValueByNumber(value);
  if (known == nullptr) {
    int64(value);
  } else {
    quoted(known->name());
  }
}

void JsonPrinter::value(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      out_ += reflection.GetBool(message, &field) ? "true" : "false";
      return;
    case FieldDescriptor::CPPTYPE_INT64:
      return int64(reflection.GetInt64(message, &field));
    case FieldDescriptor::CPPTYPE_UINT64: {
      const uint64_t bits = reflection.GetUInt64(message, &field);
      return json_kind(field) == JsonKind::kHex ? hex(bits) : uint64(bits);
    }
    case FieldDescriptor::CPPTYPE_UINT32:
      return from_uint32(reflection.GetUInt32(message, &field), field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return from_enum(reflection.GetEnumValue(message, &field), field);
    case FieldDescriptor::CPPTYPE_STRING:
      return quoted(to_base64(reflection.GetString(message, &field)));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return object(reflection.GetMessage(message, &field));
    default:
      FXOPT_CHECK(false, "schema field of a type without a JSON form: " + field.full_name());
  }
}

void JsonPrinter::item(const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return int64(reflection.GetRepeatedInt64(message, &field, index));
    case FieldDescriptor::CPPTYPE_UINT32:
      return from_uint32(reflection.GetRepeatedUInt32(message, &field, index), field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return from_enum(reflection.GetRepeatedEnumValue(message, &field, index), field);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return object(reflection.GetRepeatedMessage(message, &field, index));
    default:
      FXOPT_CHECK(false, "repeated schema field of a type without a JSON form: " + field.full_name());
  }
}

}  // namespace

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string_view json_reason(std::string_view what) {
  const size_t column = what.find("column ");
  const size_t colon = column == std::string_view::npos ? std::string_view::npos : what.find(": ", column);
  return colon == std::string_view::npos ? what : what.substr(colon + 2);
}

JsonKind json_kind(const FieldDescriptor& field) {
  // Looked up, never iterated.
  static const std::unordered_map<const FieldDescriptor*, JsonKind> kinds = [] {
    std::unordered_map<const FieldDescriptor*, JsonKind> made;
    const google::protobuf::FileDescriptor& file = *schema::Module::descriptor()->file();
    for (int i = 0; i < file.message_type_count(); ++i) {
      for (int j = 0; j < file.message_type(i)->field_count(); ++j) {
        const FieldDescriptor* entry = file.message_type(i)->field(j);
        const google::protobuf::FieldOptions& options = entry->options();
        JsonKind kind = entry->type() == FieldDescriptor::TYPE_FIXED64 ? JsonKind::kHex : JsonKind::kPlain;
        if (options.GetExtension(schema::node_index)) kind = JsonKind::kNode;
        if (options.GetExtension(schema::interned) || options.GetExtension(schema::expression)) kind = JsonKind::kText;
        made.emplace(entry, kind);
      }
    }
    return made;
  }();
  return kinds.at(&field);
}

Result<std::string> print_json(const Module& module) {
  const Result<std::string> bytes = print_pb(module);
  if (!bytes.ok()) return bytes.error();
  const Result<PbEnvelope> envelope = read_envelope(*bytes);
  FXOPT_CHECK(envelope.ok(), "the file just written does not parse");
  schema::Module message;
  FXOPT_CHECK(parse_message(message, envelope->module, kMaxMessages), "the module just written does not parse");
  spell_ids(message);
  return JsonPrinter(message).print();
}

}  // namespace fxopt
