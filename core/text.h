#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fxopt {

// The parts with `separator` between them.
std::string join(const std::vector<std::string>& parts, std::string_view separator);

// The parts of `text` between commas, empty ones left out. They point into `text`.
std::vector<std::string_view> split_list(std::string_view text);

// True for a list in which there is nothing, or only blanks, before, after or between commas: what an unset variable
// leaves of it. False for a text without a comma.
bool has_empty_part(std::string_view text);

// True when the dotted `path` is `ancestor` or lies below it: "layers.1.mlp" is within "layers.1", "layers.10" is not.
bool is_within(std::string_view path, std::string_view ancestor);

// True when `pattern` spells all of `text`, where '*' stands for any characters, also none. O(text * pattern).
bool matches_pattern(std::string_view text, std::string_view pattern);

// The shortest decimal text that parse_double reads back to the same bits; never mistakable for an integer: it contains
// '.', 'e', "inf" or "nan". Sign and payload of a NaN are not kept.
std::string format_double(double value);

// The number that all of `text` spells: decimal or scientific notation, "inf", "nan", each with an optional '-'.
// Nothing for anything else, or when the value is too large or too small for a binary64.
std::optional<double> parse_double(std::string_view text);

// The integer that all of `text` spells in decimal, with an optional '-'. Nothing for anything else or beyond 64 bits.
std::optional<int64_t> parse_int64(std::string_view text);

// "0..7", "0..120 by 8", "0, 1, 5", "0, 1, 5, 6, 9, 12, 13, 20 and 3 more": what a list of ranks is read as.
std::string format_numbers(const std::vector<int64_t>& numbers);

// "70GiB", "70GB", "512MiB", "1.5 GiB", "1000": GiB is 2^30, GB is 10^9. Nothing for anything else, for negative and
// for more than 2^63 - 1 bytes.
std::optional<int64_t> parse_bytes(std::string_view text);

// Bytes that are not negative in the largest unit of which they are a whole number, which parse_bytes() reads back:
// "25MiB", "1000".
std::string format_byte_size(int64_t bytes);

}  // namespace fxopt
