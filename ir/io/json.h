#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace google::protobuf {
class FieldDescriptor;
}  // namespace google::protobuf

namespace fxopt {

// The JSON form, printed and read by print_json and parse_json of ir/io/io.h:
//
//   {"version": 0, "module": { the fields of schema message Module, but for the string table }}
//
// It is protobuf's JSON mapping with the schema's own field names, and these differences:
//   - a field marked (interned) or (expression) is the string, one marked (node_index) the name of the node
//   - integers of 64 bits are numbers below 2^53 and strings from there on; both are read anywhere
//   - an enumeration is the full name of the enumerator; a number this build does not know stays a number
//   - float_bits and other fixed64 fields are hexadecimal strings, "0x3ff0000000000000"; an Arg may say "float": 1.0
//     instead, or "float": "nan", "inf", "-inf"
//   - bytes are base64, and "@unknown" holds a message's fields of a newer schema, serialized, in base64
//
// Fields with their default value are left out, null is read as absent. Unknown keys, keys that occur twice and a
// second alternative of an argument are errors.

// How a field's number is shown.
enum class JsonKind : uint8_t {
  kPlain,
  kText,  // a string of the table in place of its index
  kNode,  // a node's name in place of its position
  kHex,   // bits
};

// By the options of the field in the schema. O(1) expected, looked up in a table made on first use.
JsonKind json_kind(const google::protobuf::FieldDescriptor& field);

// `text` as a JSON string, in quotation marks. Bytes that are not UTF-8 become the replacement character. O(length).
std::string json_string(std::string_view text);

inline constexpr const char* kJsonUnknown = "@unknown";
inline constexpr const char* kJsonFloat = "float";

}  // namespace fxopt
