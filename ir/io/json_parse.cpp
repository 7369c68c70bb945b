// Reads JSON into the schema's messages, serializes the messages, and reads the result like the
// binary form. Therefore only the reader of the binary form checks validity.
#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fxgraph.pb.h"
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>
#include <nlohmann/json.hpp>

#include "core/bytes.h"
#include "core/scan.h"
#include "core/text.h"
#include "ir/io/io.h"
#include "ir/io/json.h"
#include "ir/io/pb_envelope.h"
#include "ir/io/pb_wire.h"

namespace fxopt {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Json = nlohmann::json;

constexpr const char* kWhatJsonIs =
    "a graph has the keys \"version\" and \"module\". Pass a report of `fxopt mem` with --baseline";
// A dict argument takes four levels of JSON: argument, dict, items and item.
constexpr uint32_t kLevelsPerNesting = 4;
constexpr uint32_t kLevelsAround = 16;

Error error_at(std::string_view text, size_t byte, ErrorCode code, std::string message) {
  Error error{code, std::move(message), std::string(), Where()};
  const TextPosition position = text_position(text, byte);
  error.where.line = position.line;
  error.where.column = position.column;
  return error;
}

// Finds faults that the JSON library would silently accept. The scan runs before the library. It
// limits the nesting, because this reader is recursive. It refuses repeated keys in an object. It
// limits the keys of an object, because lookup is linear.
class JsonScan {
 public:
  JsonScan(std::string_view text, uint32_t max_depth) : text_(text), max_depth_(max_depth) {}

  Status run() {
    while (at_ < text_.size() && ok_) step();
    return ok_ ? ok_status() : Status(std::move(error_));
  }

 private:
  void step() {
    const char c = text_[at_];
    if (c == '"') {
      skip_string();
      return;
    }
    if (c == '[' || c == '{') {
      if (keys_.size() == max_depth_)
        fail(ErrorCode::kLimit, "nested more than " + std::to_string(max_depth_) + " deep");
      keys_.emplace_back();
    }
    if ((c == ']' || c == '}') && !keys_.empty()) keys_.pop_back();
    if (c == ':' && !keys_.empty()) add_key();
    ++at_;
  }

  void skip_string() {
    const size_t first = ++at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    string_ = text_.substr(first, std::min(at_, text_.size()) - first);
    ++at_;
  }

  // Records the last string as a key of the innermost object.
  void add_key() {
    std::vector<std::string_view>& keys = keys_.back();
    if (string_.find('\\') != std::string_view::npos) fail(ErrorCode::kBadValue, "a key contains an escape sequence");
    if (keys.size() == kMaxKeys)
      fail(ErrorCode::kLimit, "more than " + std::to_string(kMaxKeys) + " keys in an object");
    if (std::find(keys.begin(), keys.end(), string_) != keys.end()) {
      fail(ErrorCode::kMalformed, "the key " + quote(string_) + " occurs twice in an object");
    }
    keys.push_back(string_);
  }

  void fail(ErrorCode code, std::string message) {
    if (ok_) error_ = error_at(text_, at_, code, std::move(message));
    ok_ = false;
  }

  static constexpr size_t kMaxKeys = 64;  // no message of the schema has as many fields

  std::string_view text_;
  uint32_t max_depth_;
  size_t at_ = 0;
  std::string_view string_;                          // the last string
  std::vector<std::vector<std::string_view>> keys_;  // keys of the enclosing arrays and objects
  bool ok_ = true;
  Error error_;
};

Result<Json> parse_tree(std::string_view text) {
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::parse_error& error) {
    const bool is_end = error.byte > text.size();
    return error_at(text, error.byte == 0 ? 0 : error.byte - 1, is_end ? ErrorCode::kTruncated : ErrorCode::kMalformed,
                    std::string(json_reason(error.what())));
  } catch (const Json::exception& error) {
    return Error{ErrorCode::kMalformed, std::string(json_reason(error.what())), "", Where()};
  }
}

template <class Number>
std::optional<Number> parse_number(std::string_view text, int base = 10) {
  Number number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (failure != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

std::optional<int64_t> to_int64(const Json& json) {
  if (json.is_string()) return parse_number<int64_t>(json.get_ref<const std::string&>());
  if (json.is_number_unsigned()) {
    const uint64_t number = json.get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (json.is_number_integer()) return json.get<int64_t>();
  return std::nullopt;
}

std::optional<uint64_t> to_uint64(const Json& json) {
  if (json.is_string()) return parse_number<uint64_t>(json.get_ref<const std::string&>());
  if (json.is_number_unsigned()) return json.get<uint64_t>();
  return std::nullopt;
}

std::optional<uint64_t> to_bits(const Json& json) {
  if (!json.is_string()) return to_uint64(json);
  const std::string_view text = json.get_ref<const std::string&>();
  if (!text.starts_with("0x")) return to_uint64(json);
  return parse_number<uint64_t>(text.substr(2), 16);
}

std::optional<double> to_double(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return parse_double(json.get_ref<const std::string&>());
  return std::nullopt;
}

class JsonReader {
 public:
  // Returns false on failure; error() has the reason.
  bool read(const Json& root);
  Error& error() { return error_; }
  // The module that was read, as a message.
  schema::Module& module() { return module_; }

 private:
  bool fail(ErrorCode code, std::string message, std::string hint = std::string());
  bool in(const std::string& step);
  bool expected(const char* what, const Json& json);
  bool unknown_key(const std::string& key, const Message& message);

  bool fill(Message& message, const Json& json);
  bool fill_field(Message& message, const std::string& key, const Json& json);
  bool fill_unknown(Message& message, const Json& json);
  bool fill_float(Message& message, const Json& json);
  bool fill_items(Message& message, const FieldDescriptor& field, const Json& json);
  bool set(Message& message, const FieldDescriptor& field, const Json& json);
  bool set_uint32(Message& message, const FieldDescriptor& field, const Json& json);
  bool set_enum(Message& message, const FieldDescriptor& field, const Json& json);
  bool set_bytes(Message& message, const FieldDescriptor& field, const Json& json);
  std::optional<int> enum_number(const EnumDescriptor& type, const Json& json);
  uint32_t intern(const std::string& text);
  void index_nodes(const Json& graph);

  schema::Module module_;
  Error error_;
  std::unordered_map<std::string, uint32_t> strings_;  // looked up, never iterated
  // Node name -> position, in the current graph.
  std::unordered_map<std::string, uint32_t> nodes_;
};

bool JsonReader::fail(ErrorCode code, std::string message, std::string hint) {
  error_ = Error{code, std::move(message), std::move(hint), Where()};
  return false;
}

bool JsonReader::in(const std::string& step) {
  std::string& path = error_.where.field;
  path = step + (path.empty() || path.front() == '[' ? "" : ".") + path;
  return false;
}

bool JsonReader::expected(const char* what, const Json& json) {
  return fail(ErrorCode::kBadValue, std::string(what) + " expected, found " + json.type_name());
}

bool JsonReader::read(const Json& root) {
  if (!root.is_object()) return expected("an object with the keys \"version\" and \"module\"", root);
  intern("");
  for (const auto& [key, value] : root.items()) {
    if (key == "version") {
      if (to_uint64(value) == kPbVersion) continue;
      fail(ErrorCode::kVersion,
           "schema version " + value.dump() + ", but this build reads " + std::to_string(kPbVersion),
           "use the fxopt that wrote the file, or write the file again");
      return in("version");
    }
    if (key == "module") {
      if (!fill(module_, value)) return in("module");
      continue;
    }
    return fail(ErrorCode::kBadValue, "the file is JSON, but not a graph of fxopt: it has the key " + quote(key),
                suggestion(key, {"version", "module"}, kWhatJsonIs));
  }
  if (!root.contains("module")) {
    return fail(ErrorCode::kMalformed, "the file is JSON, but not a graph of fxopt: the key \"module\" is missing",
                kWhatJsonIs);
  }
  return true;
}

uint32_t JsonReader::intern(const std::string& text) {
  const auto [entry, is_new] = strings_.try_emplace(text, static_cast<uint32_t>(strings_.size()));
  if (is_new) module_.add_strings(text);
  return entry->second;
}

void JsonReader::index_nodes(const Json& graph) {
  nodes_.clear();
  const auto nodes = graph.find("nodes");
  if (nodes == graph.end() || !nodes->is_array()) return;
  uint32_t position = 0;
  for (const Json& node : *nodes) {
    const auto name = node.is_object() ? node.find("name") : node.end();
    const bool named = node.is_object() && name != node.end() && name->is_string();
    nodes_.try_emplace(named ? name->get<std::string>() : std::string(), position++);
  }
}

bool JsonReader::fill(Message& message, const Json& json) {
  if (!json.is_object()) return expected("an object", json);
  if (message.GetDescriptor() == schema::Graph::descriptor()) index_nodes(json);
  for (const auto& [key, value] : json.items()) {
    if (value.is_null()) continue;  // absent, as in protobuf's own mapping
    if (!fill_field(message, key, value)) return in(key);
  }
  return true;
}

bool JsonReader::unknown_key(const std::string& key, const Message& message) {
  std::vector<std::string_view> names;
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
  return fail(ErrorCode::kBadValue, type.name() + " has no field " + quote(key), suggestion(key, names));
}

bool JsonReader::fill_field(Message& message, const std::string& key, const Json& json) {
  if (key == kJsonUnknown) return fill_unknown(message, json);
  const bool is_arg = message.GetDescriptor() == schema::Arg::descriptor();
  const bool is_float = is_arg && key == kJsonFloat;
  const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(is_float ? "float_bits" : key);
  if (field == nullptr || field->type() == FieldDescriptor::TYPE_STRING) return unknown_key(key, message);
  const google::protobuf::OneofDescriptor* choice = field->real_containing_oneof();
  if (choice != nullptr && message.GetReflection()->HasOneof(message, choice)) {
    return fail(ErrorCode::kBadValue, "only one alternative is allowed, but the message also has " +
                                          message.GetReflection()->GetOneofFieldDescriptor(message, choice)->name());
  }
  if (is_float) return fill_float(message, json);
  return field->is_repeated() ? fill_items(message, *field, json) : set(message, *field, json);
}

bool JsonReader::fill_unknown(Message& message, const Json& json) {
  const std::optional<std::string> bytes =
      json.is_string() ? from_base64(json.get_ref<const std::string&>()) : std::nullopt;
  google::protobuf::UnknownFieldSet unknown;
  if (!bytes.has_value() || !unknown.ParseFromString(*bytes)) {
    return fail(ErrorCode::kBadValue, "serialized fields in base64 expected");
  }
  message.GetReflection()->MutableUnknownFields(&message)->MergeFrom(unknown);
  return true;
}

bool JsonReader::fill_float(Message& message, const Json& json) {
  const std::optional<double> number = to_double(json);
  if (!number.has_value()) return expected("a number, \"nan\", \"inf\" or \"-inf\"", json);
  static_cast<schema::Arg&>(message).set_float_bits(std::bit_cast<uint64_t>(*number));
  return true;
}

bool JsonReader::fill_items(Message& message, const FieldDescriptor& field, const Json& json) {
  if (!json.is_array()) return expected("an array", json);
  const Reflection& reflection = *message.GetReflection();
  size_t index = 0;
  for (const Json& item : json) {
    const bool ok = field.message_type() != nullptr ? fill(*reflection.AddMessage(&message, &field), item)
                                                    : set(message, field, item);
    if (!ok) return in("[" + std::to_string(index) + "]");
    ++index;
  }
  return true;
}

// Sets a singular field, or appends to a repeated field.
bool JsonReader::set(Message& message, const FieldDescriptor& field, const Json& json) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      if (!json.is_boolean()) return expected("true or false", json);
      reflection.SetBool(&message, &field, json.get<bool>());
      return true;
    case FieldDescriptor::CPPTYPE_INT64: {
      const std::optional<int64_t> number = to_int64(json);
      if (!number.has_value()) return expected("an integer of 64 bits", json);
      field.is_repeated() ? reflection.AddInt64(&message, &field, *number)
                          : reflection.SetInt64(&message, &field, *number);
      return true;
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      const bool is_bits = json_kind(field) == JsonKind::kHex;
      const std::optional<uint64_t> number = is_bits ? to_bits(json) : to_uint64(json);
      if (!number.has_value()) return expected(is_bits ? "bits such as \"0x3ff0\"" : "an integer of 64 bits", json);
      reflection.SetUInt64(&message, &field, *number);
      return true;
    }
    case FieldDescriptor::CPPTYPE_UINT32:
      return set_uint32(message, field, json);
    case FieldDescriptor::CPPTYPE_ENUM:
      return set_enum(message, field, json);
    case FieldDescriptor::CPPTYPE_STRING:
      return set_bytes(message, field, json);
    default:
      return fill(*reflection.MutableMessage(&message, &field), json);
  }
}

bool JsonReader::set_uint32(Message& message, const FieldDescriptor& field, const Json& json) {
  uint32_t number = 0;
  const JsonKind kind = json_kind(field);
  if (kind == JsonKind::kPlain) {
    const std::optional<uint64_t> wide = to_uint64(json);
    if (!wide.has_value() || *wide > UINT32_MAX) return expected("an integer of 32 bits", json);
    number = static_cast<uint32_t>(*wide);
  } else {
    if (!json.is_string()) return expected("a string", json);
    const std::string& text = json.get_ref<const std::string&>();
    if (kind == JsonKind::kNode) {
      const auto found = nodes_.find(text);
      if (found == nodes_.end()) return fail(ErrorCode::kBadReference, "no node of the graph is named " + quote(text));
      number = found->second;
    } else {
      number = intern(text);
    }
  }
  const Reflection& reflection = *message.GetReflection();
  field.is_repeated() ? reflection.AddUInt32(&message, &field, number) : reflection.SetUInt32(&message, &field, number);
  return true;
}

std::optional<int> JsonReader::enum_number(const EnumDescriptor& type, const Json& json) {
  if (!json.is_string()) {
    const std::optional<int64_t> number = to_int64(json);
    if (number.has_value() && *number >= 0 && *number <= UINT8_MAX) return static_cast<int>(*number);
    expected("the name of an enumerator or its number", json);
    return std::nullopt;
  }
  const std::string& name = json.get_ref<const std::string&>();
  if (const EnumValueDescriptor* known = type.FindValueByName(name)) return known->number();
  std::vector<std::string_view> names;
  for (int i = 0; i < type.value_count(); ++i) names.push_back(type.value(i)->name());
  fail(ErrorCode::kBadValue, type.name() + " has no enumerator " + quote(name), suggestion(name, names));
  return std::nullopt;
}

bool JsonReader::set_enum(Message& message, const FieldDescriptor& field, const Json& json) {
  const std::optional<int> number = enum_number(*field.enum_type(), json);
  if (!number.has_value()) return false;
  const Reflection& reflection = *message.GetReflection();
  field.is_repeated() ? reflection.AddEnumValue(&message, &field, *number)
                      : reflection.SetEnumValue(&message, &field, *number);
  return true;
}

bool JsonReader::set_bytes(Message& message, const FieldDescriptor& field, const Json& json) {
  const std::optional<std::string> bytes =
      json.is_string() ? from_base64(json.get_ref<const std::string&>()) : std::nullopt;
  if (!bytes.has_value()) return expected("bytes in base64", json);
  message.GetReflection()->SetString(&message, &field, *bytes);
  return true;
}

Result<std::string> to_binary(schema::Module& module) {
  if (std::optional<Error> refused = refuse_pb_size(module.ByteSizeLong())) return *std::move(refused);
  PbCounts counts{static_cast<uint64_t>(module.graphs_size()), 0, static_cast<uint64_t>(module.strings_size()),
                  static_cast<uint64_t>(module.storages_size())};
  for (const schema::Graph& graph : module.graphs()) counts.nodes += static_cast<uint64_t>(graph.nodes_size());
  std::vector<std::string> parts(1);
  module.SerializeToString(&parts.front());
  module.Clear();
  return write_envelope(counts, std::move(parts));
}

Result<std::string> json_to_binary(std::string_view text, const ReadLimits& limits) {
  const Status scanned = JsonScan(text, limits.max_depth * kLevelsPerNesting + kLevelsAround).run();
  if (!scanned.ok()) return scanned.error();
  JsonReader reader;
  {
    const Result<Json> root = parse_tree(text);
    if (!root.ok()) return root.error();
    if (!reader.read(*root)) return std::move(reader.error());
  }
  return to_binary(reader.module());
}

}  // namespace

Result<std::unique_ptr<Module>> parse_json(std::string_view bytes, const std::string& file, const ReadLimits& limits) {
  silence_protobuf();
  Result<std::string> binary = json_to_binary(bytes, limits);
  if (!binary.ok()) {
    binary.error().where.file = file;
    return std::move(binary.error());
  }
  Result<std::unique_ptr<Module>> module = parse_pb(*binary, file, limits);
  // The byte is an offset in the binary form, which users never see.
  if (!module.ok()) module.error().where.has_byte = false;
  return module;
}

}  // namespace fxopt
