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

// Returns true if `text` has an empty or blank part before, after or between commas. For example,
// an unset shell variable leaves an empty part. Returns false for a text without a comma.
bool has_empty_part(std::string_view text);

// Returns true if the dotted `path` is equal to `ancestor` or below it. For example, "layers.1.mlp"
// is within "layers.1", but "layers.10" is not.
bool is_within(std::string_view path, std::string_view ancestor);

// Returns true if `pattern` matches the whole `text`. '*' matches any characters, including none.
// O(text * pattern).
bool matches_pattern(std::string_view text, std::string_view pattern);

// Returns the shortest decimal text that parse_double() reads back to the same bits. The text
// contains '.', 'e', "inf" or "nan", so it is never mistaken for an integer. The sign and the
// payload of a NaN are not kept.
std::string format_double(double value);

// Parses the whole `text` as a number. The number is in decimal or scientific notation, or is "inf"
// or "nan". Each form may begin with '-'. Returns nullopt for any other text, and for a value that
// is too large or too small for a binary64.
std::optional<double> parse_double(std::string_view text);

// Parses the whole `text` as a decimal integer with an optional '-'. Returns nullopt for any other
// text, and for numbers beyond 64 bits.
std::optional<int64_t> parse_int64(std::string_view text);

// Formats a list of ranks. Examples are "0..7", "0..120 by 8", "0, 1, 5", and "0, 1, 5, 6, 9, 12,
// 13, 20 and 3 more".
std::string format_numbers(const std::vector<int64_t>& numbers);

// Parses a size such as "70GiB", "70GB", "512MiB", "1.5 GiB", "1000B" or "0". GiB is 2^30 bytes,
// and GB is 10^9 bytes. Returns nullopt for any other text, for negative sizes, and for more than
// 2^63 - 1 bytes. Every number except 0 needs a unit: the shell splits an unquoted 10 GiB into two
// words, and the 10 alone must not mean 10 bytes.
std::optional<int64_t> parse_bytes(std::string_view text);

// Formats a non-negative size in the largest unit that divides the size: "25MiB", "1000B", "0".
// parse_bytes() reads the text back.
std::string format_byte_size(int64_t bytes);

// Joins at most `most` texts by commas. Names the number of the texts left out: "a, b and 3 more".
std::string join_first(std::vector<std::string> texts, size_t most);

// Returns a count with its noun, such as "1 node" or "2 nodes".
std::string count_text(size_t count, std::string_view noun);

}  // namespace fxopt
