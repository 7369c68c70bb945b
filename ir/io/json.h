#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace google::protobuf {
class FieldDescriptor;
}  // namespace google::protobuf

namespace fxopt {

// The JSON form of print_json() and parse_json() (ir/io/io.h):
//
//   {"version": 0, "module": { the fields of schema message Module, except for the string table }}
//
// It is protobuf's JSON mapping with the schema's own field names, and these differences:
//   - a field marked (interned) or (expression) holds the string, one marked (node_index) the name
//     of the node
//   - 64-bit integers are numbers below 2^53 and strings otherwise; both are accepted everywhere
//   - an enumeration is the full name of the enumerator; a number unknown to this build stays a
//     number
//   - float_bits and other fixed64 fields are hexadecimal strings, "0x3ff0000000000000"; an Arg may
//     have "float": 1.0, "nan", "inf" or "-inf" instead
//   - bytes are base64; "@unknown" holds a message's fields of a newer schema, serialized, in
//     base64
//
// Fields with their default value are omitted, and null is read as absent. Unknown keys, repeated
// keys and a second alternative of an argument are errors.

// How a number field is written.
enum class JsonKind : uint8_t {
  kPlain,
  kText,  // the string instead of its index in the table
  kNode,  // the node's name instead of its position
  kHex,   // bits, in hexadecimal
};

// Returns the kind by the field's options in the schema. O(1) expected: looked up in a table that
// is built on first use.
JsonKind json_kind(const google::protobuf::FieldDescriptor& field);

// Returns `text` as a JSON string, in quotation marks. Bytes that are not UTF-8 become the
// replacement character. O(length).
std::string json_string(std::string_view text);

inline constexpr const char* kJsonUnknown = "@unknown";
inline constexpr const char* kJsonFloat = "float";

}  // namespace fxopt
