#pragma once

#include <string>
#include <string_view>

namespace google::protobuf {
class Message;
class Reflection;
}  // namespace google::protobuf

namespace fxopt {

// Fields of a newer schema. They are kept as the bytes of a *fragment*: a message of the same type that holds nothing
// but unknown fields, its own and those of the messages inside it that have no place of their own in the graph (an Int,
// an ArgList, a Tensor, ...; elements of repeated fields stand at their position). Arguments, values and records inside
// it keep theirs themselves.

// The fragment of `message`; empty when there is nothing unknown. Cost: a walk by reflection, so ask first on hot
// paths.
std::string unknown_fragment(const google::protobuf::Message& message);

// Whether there are unknown fields in `message` itself.
bool has_own_unknown(const google::protobuf::Message& message);
bool has_own_unknown(const google::protobuf::Message& message, const google::protobuf::Reflection& reflection);
const google::protobuf::Reflection& reflection_of(const google::protobuf::Message& message);

// The same where the type is known: the library finds the reflection of a message slowly.
template <class Message>
bool has_own_unknown(const Message& message) {
  static const google::protobuf::Reflection& reflection = reflection_of(message);
  return has_own_unknown(message, reflection);
}

// Puts a fragment back. Parts whose place is gone (another alternative, a shorter list) are dropped. False when `bytes`
// are no fragment: they do not parse, or hold a field that this build knows.
bool restore_unknown(google::protobuf::Message& message, std::string_view bytes);

}  // namespace fxopt
