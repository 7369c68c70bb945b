#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fxopt {

// Classes of ASCII characters, independent of the locale.
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
// A letter or underscore: the first character of a name.
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
// A letter, underscore or digit.
constexpr bool is_word(char c) { return is_letter(c) || is_digit(c); }
// The same, or a dot between names.
constexpr bool is_dotted_word(char c) { return is_word(c) || c == '.'; }

// `text` without space at both ends.
std::string_view trim(std::string_view text);

// Both count from 1; the column counts bytes.
struct TextPosition {
  uint64_t line = 1;
  uint64_t column = 1;
};

// Returns line and column of the byte at that offset, or of the end if the offset is larger.
// O(offset).
TextPosition text_position(std::string_view text, size_t offset);

}  // namespace fxopt
