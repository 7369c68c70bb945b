#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fxopt {

// Joins the parts with `separator` between them.
std::string join(const std::vector<std::string>& parts, std::string_view separator);

// Splits `text` at commas and leaves out empty parts. The parts point into `text`.
std::vector<std::string_view> split_list(std::string_view text);

// Returns true if a list has an empty or blank part before, after or between commas, as an unset
// variable leaves it. Returns false for a text without a comma.
bool has_empty_part(std::string_view text);

// Returns true if the dotted `path` is `ancestor` or below it: "layers.1.mlp" is within "layers.1",
// "layers.10" is not.
bool is_within(std::string_view path, std::string_view ancestor);

// Returns true if `pattern` matches all of `text`; '*' matches any characters, including none.
// O(text * pattern).
bool matches_pattern(std::string_view text, std::string_view pattern);

// Returns the shortest decimal text that parse_double reads back to the same bits. It is never
// mistaken for an integer: it contains '.', 'e', "inf" or "nan". Sign and payload of a NaN are not
// kept.
std::string format_double(double value);

// Parses all of `text` as a number: decimal or scientific notation, "inf", "nan", each with an
// optional '-'. Returns nullopt for anything else, and if the value is too large or too small for a
// binary64.
std::optional<double> parse_double(std::string_view text);

// Parses all of `text` as a decimal integer with an optional '-'. Returns nullopt for anything else
// or beyond 64 bits.
std::optional<int64_t> parse_int64(std::string_view text);

// Formats a list of ranks: "0..7", "0..120 by 8", "0, 1, 5", "0, 1, 5, 6, 9, 12, 13, 20 and 3
// more".
std::string format_numbers(const std::vector<int64_t>& numbers);

// Parses "70GiB", "70GB", "512MiB", "1.5 GiB", "1000B", "0": GiB is 2^30, GB is 10^9. Returns
// nullopt for anything else, for negative sizes, for more than 2^63 - 1 bytes, and for a number
// without a unit: the shell splits "10 GiB" into two words.
std::optional<int64_t> parse_bytes(std::string_view text);

// Formats a non-negative size in the largest unit that divides it: "25MiB", "1000B", "0".
// parse_bytes() reads it back.
std::string format_byte_size(int64_t bytes);

}  // namespace fxopt
