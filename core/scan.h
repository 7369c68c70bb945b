#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fxopt {

// Classes of ASCII characters, independent of the locale.
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
// Returns true for a letter or an underscore. A name can begin with either character.
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
// Returns true for a letter, an underscore or a digit.
constexpr bool is_word(char c) { return is_letter(c) || is_digit(c); }
// Returns true for a letter, an underscore, a digit or a dot.
constexpr bool is_dotted_word(char c) { return is_word(c) || c == '.'; }

// Returns `text` without the white space at both ends.
std::string_view trim(std::string_view text);

// A line and a column of a text. Both are counted from 1. Columns are bytes.
struct TextPosition {
  uint64_t line = 1;
  uint64_t column = 1;
};

// Returns the line and column of the byte at `offset`. If `offset` is larger than the text, returns
// the position of the end of the text. O(offset).
TextPosition text_position(std::string_view text, size_t offset);

}  // namespace fxopt
