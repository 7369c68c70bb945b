#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace fxopt {

// RFC 4648 base64 with padding.
std::string to_base64(std::string_view bytes);

// The inverse; nothing when `text` is not canonical base64.
std::optional<std::string> from_base64(std::string_view text);

// `text` as a double-quoted literal: \" \\ \n \t \r, \xNN for other control bytes and for bytes that are not valid
// UTF-8.
std::string quote(std::string_view text);

// `text` with control characters and bytes that are not UTF-8 escaped as quote() does: names and paths come from files, which
// must not steer a terminal. On one line; printable_lines() keeps line feeds. O(length).
std::string printable_line(std::string_view text);
std::string printable_lines(std::string_view text);

// The inverse of quote(), from quotation mark to quotation mark; nothing when `literal` is not such a literal. Bytes
// that quote() would escape may also stand as they are, but for line feeds and quotation marks.
std::optional<std::string> unquote(std::string_view literal);

// True for well-formed UTF-8 (no overlong forms, no surrogates, at most U+10FFFF).
bool is_utf8(std::string_view text);

// The length in bytes (1 to 4) of the well-formed UTF-8 character that `text` begins with; 0 when there is none.
size_t utf8_length(std::string_view text);

// 0 to 15, or -1 for another character.
int hex_digit(char c);

// "1.50 GiB", "512 B": binary units with two decimals above 1 KiB.
std::string human_bytes(double bytes);

}  // namespace fxopt
