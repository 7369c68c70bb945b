#include "ir/io/pb_unknown.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "fxgraph.pb.h"
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include "ir/io/pb_wire.h"

namespace fxopt {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// A fragment covers one argument, value or record, without nested arguments, so it is a shallow
// tree.
constexpr int kMaxFragmentDepth = 16;

// Whether unknown fields of messages in `field` go into the fragment of the enclosing message.
bool is_folded(const FieldDescriptor& field) {
  static const std::vector<const Descriptor*> always = {
      schema::Int::descriptor(),        schema::SymbolicEntry::descriptor(), schema::Placement::descriptor(),
      schema::ControlDep::descriptor(), schema::Counters::descriptor(),      schema::NameCounter::descriptor(),
      schema::Complex::descriptor(),    schema::Enum::descriptor(),          schema::ArgList::descriptor(),
      schema::ArgDict::descriptor(),    schema::IntList::descriptor(),       schema::ValueList::descriptor(),
      schema::ValueDict::descriptor(),  schema::Symbolic::descriptor(),      schema::OpaqueValue::descriptor(),
  };
  const Descriptor* type = field.message_type();
  const Descriptor* owner = field.containing_type();
  if (std::find(always.begin(), always.end(), type) != always.end()) return true;
  return (owner == schema::Value::descriptor() && type == schema::Tensor::descriptor()) ||
         (owner == schema::Arg::descriptor() && type == schema::Opaque::descriptor()) ||
         (owner == schema::ArgItem::descriptor() && field.number() == schema::ArgItem::kKeyFieldNumber);
}

// Fills `fragment`, an empty message of the type of `message`. Returns false if no field is
// unknown.
bool collect(const Message& message, Message& fragment) {
  const Reflection& reflection = *message.GetReflection();
  bool found = !reflection.GetUnknownFields(message).empty();
  if (found) reflection.MutableUnknownFields(&fragment)->MergeFrom(reflection.GetUnknownFields(message));
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->message_type() == nullptr || !is_folded(*field)) continue;
    bool found_here = false;
    if (field->is_repeated()) {
      for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
        Message* item = reflection.AddMessage(&fragment, field);
        found_here |= collect(reflection.GetRepeatedMessage(message, field, i), *item);
      }
    } else {
      found_here = collect(reflection.GetMessage(message, field), *reflection.MutableMessage(&fragment, field));
    }
    if (!found_here) reflection.ClearField(&fragment, field);
    found |= found_here;
  }
  return found;
}

bool restore(Message& message, const Message& fragment) {
  const Reflection& reflection = *message.GetReflection();
  reflection.MutableUnknownFields(&message)->MergeFrom(reflection.GetUnknownFields(fragment));
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(fragment, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->message_type() == nullptr) return false;
    if (field->is_repeated()) {
      const int size = std::min(reflection.FieldSize(message, field), reflection.FieldSize(fragment, field));
      for (int i = 0; i < size; ++i) {
        Message* item = reflection.MutableRepeatedMessage(&message, field, i);
        if (!restore(*item, reflection.GetRepeatedMessage(fragment, field, i))) return false;
      }
    } else if (field->containing_oneof() == nullptr || reflection.HasField(message, field)) {
      if (!restore(*reflection.MutableMessage(&message, field), reflection.GetMessage(fragment, field))) return false;
    }
  }
  return true;
}

}  // namespace

std::string unknown_fragment(const Message& message) {
  const std::unique_ptr<Message> fragment(message.New());
  return collect(message, *fragment) ? fragment->SerializeAsString() : std::string();
}

bool has_own_unknown(const Message& message, const Reflection& reflection) {
  return !reflection.GetUnknownFields(message).empty();
}

bool has_own_unknown(const Message& message) { return has_own_unknown(message, reflection_of(message)); }

const Reflection& reflection_of(const Message& message) { return *message.GetReflection(); }

bool restore_unknown(Message& message, std::string_view bytes) {
  const std::unique_ptr<Message> fragment(message.New());
  return parse_message(*fragment, bytes, kMaxFragmentDepth) && restore(message, *fragment);
}

}  // namespace fxopt
