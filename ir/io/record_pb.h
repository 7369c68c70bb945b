#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ir/graph/records.h"

namespace google::protobuf {
class FieldDescriptor;
class Message;
class Reflection;
}  // namespace google::protobuf

namespace fxopt {

// Helpers that read and write records (ir/graph/records.h). The helpers find the schema's fields in
// the order of a record's visit(), and access scalar fields by reflection. Strings, expressions,
// tensors and metadata need the tables of PbDecoder and PbEncoder.

template <class T>
concept IsRecord = requires {
  T::kMessage;
};

// A field and the reflection of its message. The reflection is kept, because Message::GetReflection
// would look it up on each call.
struct PbField {
  const google::protobuf::FieldDescriptor* field = nullptr;
  const google::protobuf::Reflection* reflection = nullptr;
};

// Returns the fields with the given names in the schema message `message`. Throws InternalError if
// the schema lacks a name.
std::vector<PbField> find_pb_fields(const char* message, const std::vector<std::string>& names);

// Returns the fields of a record in the order of its visit(). The fields are looked up once for
// each record type.
template <IsRecord Record>
const std::vector<PbField>& record_fields() {
  static const std::vector<PbField> fields = [] {
    std::vector<std::string> names;
    Record record;
    Record::visit(record, [&names](const char* name, const auto&) { names.emplace_back(name); });
    return find_pb_fields(Record::kMessage, names);
  }();
  return fields;
}

// Returns true if the message has the field. For a field without presence, returns true if the
// field does not have its default value.
bool pb_has(const google::protobuf::Message& message, const PbField& field);

const google::protobuf::Message& pb_submessage(const google::protobuf::Message& message, const PbField& field);
const google::protobuf::Message& pb_submessage(const google::protobuf::Message& message, const PbField& field,
                                               int index);
google::protobuf::Message& pb_mutable_submessage(google::protobuf::Message& message, const PbField& field);
google::protobuf::Message& pb_add_submessage(google::protobuf::Message& message, const PbField& field);
int pb_count(const google::protobuf::Message& message, const PbField& field);

void pb_get(const google::protobuf::Message& message, const PbField& field, bool& value);
void pb_get(const google::protobuf::Message& message, const PbField& field, int64_t& value);
void pb_get(const google::protobuf::Message& message, const PbField& field, uint64_t& value);
void pb_get(const google::protobuf::Message& message, const PbField& field, uint32_t& value);
void pb_get(const google::protobuf::Message& message, const PbField& field, std::string& value);
int pb_get_enum(const google::protobuf::Message& message, const PbField& field);
int64_t pb_get_item_int64(const google::protobuf::Message& message, const PbField& field, int index);
uint32_t pb_get_item_uint32(const google::protobuf::Message& message, const PbField& field, int index);

void pb_set(google::protobuf::Message& message, const PbField& field, bool value);
void pb_set(google::protobuf::Message& message, const PbField& field, int64_t value);
void pb_set(google::protobuf::Message& message, const PbField& field, uint64_t value);
void pb_set(google::protobuf::Message& message, const PbField& field, uint32_t value);
void pb_set(google::protobuf::Message& message, const PbField& field, const std::string& value);
void pb_set_enum(google::protobuf::Message& message, const PbField& field, int value);
void pb_add_int64(google::protobuf::Message& message, const PbField& field, int64_t value);
void pb_add_uint32(google::protobuf::Message& message, const PbField& field, uint32_t value);

}  // namespace fxopt
