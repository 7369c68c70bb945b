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
// The form is protobuf's JSON mapping with the schema's own field names. The form differs from
// protobuf's mapping in these points:
//   - A field marked (interned) or (expression) holds the string. A field marked (node_index) holds
//     the name of the node.
//   - A 64-bit integer is a number below 2^53 and a string otherwise. Both forms are accepted
//     everywhere.
//   - An enumeration is the full name of the enumerator. A number without an enumerator in this
//     build remains a number.
//   - float_bits and other fixed64 fields are hexadecimal strings such as "0x3ff0000000000000". An
//     Arg may have "float": 1.0, "nan", "inf" or "-inf" instead.
//   - Bytes are base64. "@unknown" holds a message's fields of a newer schema, serialized, in
//     base64.
//
// Fields with their default value are omitted. null means that the field is absent. Unknown keys,
// repeated keys and a second alternative of an argument are errors.

// The form in which a number field is written.
enum class JsonKind : uint8_t {
  kPlain,
  kText,  // the string instead of its index in the table
  kNode,  // the node's name instead of its position
  kHex,   // bits, in hexadecimal
};

// Returns the kind that the field's options in the schema select. O(1) expected, because a table of
// the kinds is built on first use.
JsonKind json_kind(const google::protobuf::FieldDescriptor& field);

// Returns `text` as a JSON string, in quotation marks. Bytes that are not UTF-8 become the
// replacement character. O(length).
std::string json_string(std::string_view text);

// Returns the reason in a message of the JSON library, such as "parse error at line 1, column 5:
// syntax error". The result is a part of `what`.
std::string_view json_reason(std::string_view what);

inline constexpr const char* kJsonUnknown = "@unknown";
inline constexpr const char* kJsonFloat = "float";

}  // namespace fxopt
