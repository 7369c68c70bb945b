#include "core/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/saturate.h"

namespace fxopt {

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    if (comma != 0) parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return parts;
}

bool has_empty_part(std::string_view text) {
  if (text.find(',') == std::string_view::npos) return false;
  bool is_empty = true;
  for (const char each : text) {
    if (each == ',' && is_empty) return true;
    is_empty = each == ',' || (is_empty && each == ' ');
  }
  return is_empty;
}

bool is_within(std::string_view path, std::string_view ancestor) {
  return path.starts_with(ancestor) && (path.size() == ancestor.size() || path[ancestor.size()] == '.');
}

bool matches_pattern(std::string_view text, std::string_view pattern) {
  size_t at = 0, next = 0;
  // the last star, and the end of its match so far
  size_t star = std::string_view::npos, after_star = 0;
  while (at < text.size()) {
    if (next < pattern.size() && pattern[next] == '*') {
      star = next++;
      after_star = at;
    } else if (next < pattern.size() && pattern[next] == text[at]) {
      ++next;
      ++at;
    } else if (star != std::string_view::npos) {
      next = star + 1;
      at = ++after_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', next) == std::string_view::npos;
}

std::string format_double(double value) {
  if (std::isnan(value)) return "nan";
  // the longest result, such as -2.2250738585072014e-308, has 24 characters
  std::array<char, 32> buffer{};
  const std::to_chars_result end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  std::string text(buffer.data(), end.ptr);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::optional<double> parse_double(std::string_view text) {
  const std::string_view magnitude = text.substr(text.empty() || text.front() != '-' ? 0 : 1);
  // from_chars also accepts "infinity", "nan(...)" and other letter cases, which format_double
  // never writes.
  const bool is_word = magnitude == "inf" || magnitude == "nan";
  if (!is_word && magnitude.find_first_not_of("0123456789.eE+-") != std::string_view::npos) return std::nullopt;
  double value = 0;
  const std::from_chars_result result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> parse_int64(std::string_view text) {
  int64_t value = 0;
  const std::from_chars_result result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> parse_bytes(std::string_view text) {
  struct ByteUnit {
    std::string_view name;
    double bytes;
  };
  static constexpr std::array<ByteUnit, 10> kUnits = {{{"KiB", 1024.0},
                                                       {"MiB", 1048576.0},
                                                       {"GiB", 1073741824.0},
                                                       {"TiB", 1099511627776.0},
                                                       {"KB", 1e3},
                                                       {"kB", 1e3},
                                                       {"MB", 1e6},
                                                       {"GB", 1e9},
                                                       {"TB", 1e12},
                                                       {"B", 1.0}}};
  if (text == "0") return 0;
  const auto unit =
      std::find_if(kUnits.begin(), kUnits.end(), [text](const ByteUnit& each) { return text.ends_with(each.name); });
  if (unit == kUnits.end()) return std::nullopt;
  text.remove_suffix(unit->name.size());
  const double factor = unit->bytes;
  while (text.ends_with(' ')) text.remove_suffix(1);
  if (const std::optional<int64_t> whole = parse_int64(text); whole.has_value() && factor == 1) {
    return *whole >= 0 ? whole : std::nullopt;
  }
  const std::optional<double> number = parse_double(text);
  if (!number.has_value() || !std::isfinite(*number) || *number < 0) return std::nullopt;
  const double bytes = std::floor(*number * factor);
  if (bytes >= 9223372036854775808.0) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

std::string format_numbers(const std::vector<int64_t>& numbers) {
  constexpr size_t kMostListed = 8;
  const auto step_to = [&numbers](size_t i) { return WideSum{numbers[i]} - numbers[i - 1]; };
  bool is_even = numbers.size() > 2 && step_to(1) > 0;
  for (size_t i = 1; i < numbers.size(); ++i) is_even = is_even && step_to(i) == step_to(1);
  if (is_even) {
    const std::string text = std::to_string(numbers.front()) + ".." + std::to_string(numbers.back());
    return step_to(1) == 1 ? text : text + " by " + std::to_string(saturate(step_to(1)));
  }
  std::vector<std::string> parts;
  for (const int64_t number : numbers) {
    if (parts.size() == kMostListed && numbers.size() > kMostListed + 1) {
      return join(parts, ", ") + " and " + std::to_string(numbers.size() - kMostListed) + " more";
    }
    parts.push_back(std::to_string(number));
  }
  return join(parts, ", ");
}

std::string format_byte_size(int64_t bytes) {
  static constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  if (bytes == 0) return "0";
  size_t unit = 0;
  while (bytes % 1024 == 0 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + std::string(kUnits[unit]);
}

std::string join_first(std::vector<std::string> texts, size_t most) {
  const size_t more = texts.size() > most ? texts.size() - most : 0;
  texts.resize(texts.size() - more);
  return join(texts, ", ") + (more == 0 ? "" : " and " + std::to_string(more) + " more");
}

std::string count_text(size_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

}  // namespace fxopt
