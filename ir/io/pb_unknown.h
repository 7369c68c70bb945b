#pragma once

#include <string>
#include <string_view>

namespace google::protobuf {
class Message;
class Reflection;
}  // namespace google::protobuf

namespace fxopt {

// Fields of a newer schema are kept as the bytes of a *fragment*. A fragment is a message of the
// same type that holds only unknown fields. A fragment holds the unknown fields of the message. It
// also holds the unknown fields of nested messages that are not separate objects in the graph, such
// as Int, ArgList and Tensor. Elements of repeated fields keep their positions. Arguments, values
// and records inside the message keep their own unknown fields.

// Returns the fragment of `message`. Empty if `message` has no unknown fields. This function walks
// the message by reflection, so hot paths should call has_own_unknown() first.
std::string unknown_fragment(const google::protobuf::Message& message);

// Returns true if `message` has unknown fields. Ignores nested messages.
bool has_own_unknown(const google::protobuf::Message& message);
bool has_own_unknown(const google::protobuf::Message& message, const google::protobuf::Reflection& reflection);
const google::protobuf::Reflection& reflection_of(const google::protobuf::Message& message);

// Returns true if a message of a known type has unknown fields. The reflection is looked up only
// once, because the library's look-up is slow.
template <class Message>
bool has_own_unknown(const Message& message) {
  static const google::protobuf::Reflection& reflection = reflection_of(message);
  return has_own_unknown(message, reflection);
}

// Returns the fragment of a message without nested messages whose unknown fields belong to it.
template <class Message>
std::string own_unknown(const Message& message) {
  return has_own_unknown(message) ? unknown_fragment(message) : std::string();
}

// Returns the fragment of a message in which only `part` has unknown fields that belong to it.
template <class Message, class Part>
std::string unknown_with(const Message& message, const Part& part) {
  return has_own_unknown(message) || has_own_unknown(part) ? unknown_fragment(message) : std::string();
}

// Restores a fragment. A piece is dropped if its place no longer exists because another alternative
// is set or a list is shorter. Returns false if `bytes` are not a fragment. Bytes are not a
// fragment if they do not parse, or if they hold a field that this build knows.
bool restore_unknown(google::protobuf::Message& message, std::string_view bytes);

}  // namespace fxopt
