#pragma once

#include <string>
#include <string_view>

namespace google::protobuf {
class Message;
class Reflection;
}  // namespace google::protobuf

namespace fxopt {

// Fields of a newer schema are kept as the bytes of a *fragment*: a message of the same type that
// holds only unknown fields. These are its own fields and those of nested messages that have no
// object of their own in the graph (an Int, an ArgList, a Tensor, ...). Elements of repeated fields
// keep their positions. Arguments, values and records inside the message keep their unknown fields
// themselves.

// Returns the fragment of `message`; empty if it has no unknown fields. This walks the message by
// reflection, so hot paths should ask has_own_unknown() first.
std::string unknown_fragment(const google::protobuf::Message& message);

// Whether `message` itself has unknown fields.
bool has_own_unknown(const google::protobuf::Message& message);
bool has_own_unknown(const google::protobuf::Message& message, const google::protobuf::Reflection& reflection);
const google::protobuf::Reflection& reflection_of(const google::protobuf::Message& message);

// The same for a known type: finding a message's reflection is slow in the library.
template <class Message>
bool has_own_unknown(const Message& message) {
  static const google::protobuf::Reflection& reflection = reflection_of(message);
  return has_own_unknown(message, reflection);
}

// Restores a fragment. Pieces whose place no longer exists (another alternative, a shorter list)
// are dropped. Returns false if `bytes` are no fragment: they do not parse, or hold a field that
// this build knows.
bool restore_unknown(google::protobuf::Message& message, std::string_view bytes);

}  // namespace fxopt
