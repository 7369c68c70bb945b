#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fxopt {

// The parts with `separator` between them.
std::string join(const std::vector<std::string>& parts, std::string_view separator);

// The shortest decimal text that parse_double reads back to the same bits; never mistakable for an integer: it contains
// '.', 'e', "inf" or "nan". Sign and payload of a NaN are not kept.
std::string format_double(double value);

// The number that all of `text` spells: decimal or scientific notation, "inf", "nan", each with an optional '-'.
// Nothing for anything else, or when the value is too large or too small for a binary64.
std::optional<double> parse_double(std::string_view text);

// The integer that all of `text` spells in decimal, with an optional '-'. Nothing for anything else or beyond 64 bits.
std::optional<int64_t> parse_int64(std::string_view text);

}  // namespace fxopt
