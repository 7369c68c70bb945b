#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace fxopt {

// Returns RFC 4648 base64 with padding.
std::string to_base64(std::string_view bytes);

// The inverse. Returns nullopt if `text` is not canonical base64.
std::optional<std::string> from_base64(std::string_view text);

// Returns `text` as a double-quoted literal: \" \\ \n \t \r, \xNN for other control bytes and for
// bytes that are not valid UTF-8.
std::string quote(std::string_view text);

// Returns `text` with control characters and bytes that are not UTF-8 escaped as quote() does.
// Names and paths come from files, which must not control a terminal. printable_line() escapes line
// feeds, printable_lines() keeps them. O(length).
std::string printable_line(std::string_view text);
std::string printable_lines(std::string_view text);

// The inverse of quote(), from quotation mark to quotation mark. Returns nullopt if `literal` is
// not such a literal. Bytes that quote() would escape are also accepted unescaped, except line
// feeds and quotation marks.
std::optional<std::string> unquote(std::string_view literal);

// True for well-formed UTF-8 (no overlong forms, no surrogates, at most U+10FFFF).
bool is_utf8(std::string_view text);

// Returns the length in bytes (1 to 4) of the well-formed UTF-8 character at the beginning of
// `text`, or 0.
size_t utf8_length(std::string_view text);

// Returns 0 to 15, or -1 for any other character.
int hex_digit(char c);

// Returns "1.50 GiB", "512 B": binary units with two decimals from 1 KiB on.
std::string human_bytes(double bytes);

}  // namespace fxopt
