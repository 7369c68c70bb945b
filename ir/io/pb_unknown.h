#pragma once

#include <string>
#include <string_view>

namespace google::protobuf {
class Message;
class Reflection;
}  // namespace google::protobuf

namespace fxopt {

// Fields of a newer schema are kept as the bytes of a *fragment*: a copy of the message that
// contains only the unknown fields. The fragment includes the unknown fields of nested messages of
// some types, such as Int, ArgList and Tensor. These messages are not separate objects in the
// graph. In the fragment, an element of a repeated field has the same index as in the message.
// Nested messages that are separate objects in the graph, such as arguments and values, have their
// own fragments.

// Returns the fragment of `message`. Empty if `message` has no unknown fields. This function walks
// the message by reflection, so hot paths should call has_own_unknown() first.
std::string unknown_fragment(const google::protobuf::Message& message);

// Returns true if `message` has unknown fields. Ignores nested messages.
bool has_own_unknown(const google::protobuf::Message& message);
bool has_own_unknown(const google::protobuf::Message& message, const google::protobuf::Reflection& reflection);
const google::protobuf::Reflection& reflection_of(const google::protobuf::Message& message);

// Returns true if `message` has unknown fields. Ignores nested messages. The reflection of the type
// is looked up only once, because the look-up in the protobuf library is slow.
template <class Message>
bool has_own_unknown(const Message& message) {
  static const google::protobuf::Reflection& reflection = reflection_of(message);
  return has_own_unknown(message, reflection);
}

// Like unknown_fragment(), but faster. Use this function only for a type of message whose fragments
// never include nested messages.
template <class Message>
std::string own_unknown(const Message& message) {
  return has_own_unknown(message) ? unknown_fragment(message) : std::string();
}

// Like unknown_fragment(), but faster: looks for unknown fields only in `message` itself and in its
// nested message `part`. Do not use this function if the fragment of `message` can include another
// nested message.
template <class Message, class Part>
std::string unknown_with(const Message& message, const Part& part) {
  return has_own_unknown(message) || has_own_unknown(part) ? unknown_fragment(message) : std::string();
}

// Adds the unknown fields in the fragment `bytes` to `message` and to its nested messages. The
// message may have changed since the fragment was made. Unknown fields of two kinds of nested
// messages are dropped:
//   - an element beyond the end of a repeated field, because the field is now shorter
//   - a member of a oneof, if `message` does not set this member
//
// Returns false if `bytes` are not a fragment. Bytes are not a fragment if they do not parse, or if
// they contain a field that this build knows and that is not a nested message. Dropped nested
// messages are not checked for such fields.
bool restore_unknown(google::protobuf::Message& message, std::string_view bytes);

}  // namespace fxopt
