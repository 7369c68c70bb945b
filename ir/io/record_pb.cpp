#include "ir/io/record_pb.h"

#include "fxgraph.pb.h"
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "core/check.h"

namespace fxopt {

using google::protobuf::Message;

std::vector<PbField> find_pb_fields(const char* message, const std::vector<std::string>& names) {
  const google::protobuf::Descriptor* type = schema::Module::descriptor()->file()->FindMessageTypeByName(message);
  FXOPT_CHECK(type != nullptr, std::string("no schema message ") + message);
  const google::protobuf::Reflection* reflection =
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->GetReflection();
  std::vector<PbField> fields;
  for (const std::string& name : names) {
    fields.push_back(PbField{type->FindFieldByName(name), reflection});
    FXOPT_CHECK(fields.back().field != nullptr, std::string("no field ") + message + "." + name);
  }
  return fields;
}

bool pb_has(const Message& message, const PbField& field) { return field.reflection->HasField(message, field.field); }

const Message& pb_submessage(const Message& message, const PbField& field) {
  return field.reflection->GetMessage(message, field.field);
}

const Message& pb_submessage(const Message& message, const PbField& field, int index) {
  return field.reflection->GetRepeatedMessage(message, field.field, index);
}

Message& pb_mutable_submessage(Message& message, const PbField& field) {
  return *field.reflection->MutableMessage(&message, field.field);
}

Message& pb_add_submessage(Message& message, const PbField& field) {
  return *field.reflection->AddMessage(&message, field.field);
}

int pb_count(const Message& message, const PbField& field) { return field.reflection->FieldSize(message, field.field); }

void pb_get(const Message& message, const PbField& field, bool& value) {
  value = field.reflection->GetBool(message, field.field);
}

void pb_get(const Message& message, const PbField& field, int64_t& value) {
  value = field.reflection->GetInt64(message, field.field);
}

void pb_get(const Message& message, const PbField& field, uint64_t& value) {
  value = field.reflection->GetUInt64(message, field.field);
}

void pb_get(const Message& message, const PbField& field, uint32_t& value) {
  value = field.reflection->GetUInt32(message, field.field);
}

void pb_get(const Message& message, const PbField& field, std::string& value) {
  value = field.reflection->GetString(message, field.field);
}

int pb_get_enum(const Message& message, const PbField& field) {
  return field.reflection->GetEnumValue(message, field.field);
}

int64_t pb_get_item_int64(const Message& message, const PbField& field, int index) {
  return field.reflection->GetRepeatedInt64(message, field.field, index);
}

uint32_t pb_get_item_uint32(const Message& message, const PbField& field, int index) {
  return field.reflection->GetRepeatedUInt32(message, field.field, index);
}

void pb_set(Message& message, const PbField& field, bool value) {
  field.reflection->SetBool(&message, field.field, value);
}

void pb_set(Message& message, const PbField& field, int64_t value) {
  field.reflection->SetInt64(&message, field.field, value);
}

void pb_set(Message& message, const PbField& field, uint64_t value) {
  field.reflection->SetUInt64(&message, field.field, value);
}

void pb_set(Message& message, const PbField& field, uint32_t value) {
  field.reflection->SetUInt32(&message, field.field, value);
}

void pb_set(Message& message, const PbField& field, const std::string& value) {
  field.reflection->SetString(&message, field.field, value);
}

void pb_set_enum(Message& message, const PbField& field, int value) {
  field.reflection->SetEnumValue(&message, field.field, value);
}

void pb_add_int64(Message& message, const PbField& field, int64_t value) {
  field.reflection->AddInt64(&message, field.field, value);
}

void pb_add_uint32(Message& message, const PbField& field, uint32_t value) {
  field.reflection->AddUInt32(&message, field.field, value);
}

}  // namespace fxopt
