#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace fxopt {

// Encodes bytes as base64 (RFC 4648) with padding.
std::string to_base64(std::string_view bytes);

// Decodes base64, as the inverse of to_base64(). Returns nullopt if `text` is not canonical base64.
std::optional<std::string> from_base64(std::string_view text);

// Returns `text` as a double-quoted literal. The literal has the escapes \" \\ \n \t \r. Other
// control bytes, and bytes that are not valid UTF-8, become \xNN.
std::string quote(std::string_view text);

// Returns `text` with the escapes of quote() for control characters and for bytes that are not
// UTF-8. Without these escapes, a name or path from a file could send commands to the terminal.
// printable_line() escapes line feeds, and printable_lines() keeps line feeds. O(length).
std::string printable_line(std::string_view text);
std::string printable_lines(std::string_view text);

// Decodes a literal, as the inverse of quote(). `literal` includes both quotation marks. Inside the
// literal, line feeds, quotation marks and backslashes must be escaped. Other bytes may be escaped.
// Returns nullopt if `literal` is malformed.
std::optional<std::string> unquote(std::string_view literal);

// Returns true if `text` is well-formed UTF-8: no overlong forms, no surrogates, at most U+10FFFF.
bool is_utf8(std::string_view text);

// Returns the length in bytes, 1 to 4, of the UTF-8 character at the beginning of `text`. Returns 0
// if `text` does not begin with a well-formed character.
size_t utf8_length(std::string_view text);

// Returns the value of a hexadecimal digit, 0 to 15. Returns -1 for any other character.
int hex_digit(char c);

// Formats a size in binary units, such as "1.50 GiB" or "512 B". Sizes from 1 KiB on have two
// decimals.
std::string human_bytes(double bytes);

}  // namespace fxopt
