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
//   - A field with the schema option (interned) or (expression) contains the string instead of an
//     index. A field with the option (node_index) contains the name of the node.
//   - A 64-bit integer below 2^53 is written as a number. A larger integer is written as a string.
//     Readers accept both forms everywhere.
//   - An enumeration is the full name of the enumerator. A number without an enumerator in this
//     build remains a number.
//   - float_bits and other fixed64 fields are hexadecimal strings such as "0x3ff0000000000000". In
//     an Arg, readers also accept the key "float" instead of "float_bits". The value of "float" is
//     a number such as 1.0, or one of the strings "nan", "inf" and "-inf".
//   - Bytes are base64. The key "@unknown" contains the serialized fields of a newer schema in
//     base64.
//
// Fields with their default value are omitted. null means that the field is absent. Unknown keys,
// repeated keys and two alternatives of one oneof are errors.

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

// Returns the part of `what` that gives the reason. `what` is a message of the JSON library, such
// as "parse error at line 1, column 5: syntax error".
std::string_view json_reason(std::string_view what);

inline constexpr const char* kJsonUnknown = "@unknown";
inline constexpr const char* kJsonFloat = "float";

}  // namespace fxopt
