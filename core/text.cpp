#include "core/text.h"

#include <array>
#include <charconv>
#include <cmath>

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
  size_t star = std::string_view::npos, after_star = 0;  // the last star, and how far it has taken the text
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
  std::array<char, 32> buffer{};  // the longest shortest form, as in -2.2250738585072014e-308, has 24 characters
  const std::to_chars_result end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  std::string text(buffer.data(), end.ptr);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::optional<double> parse_double(std::string_view text) {
  const std::string_view magnitude = text.substr(text.empty() || text.front() != '-' ? 0 : 1);
  // from_chars also takes "infinity", "nan(...)" and other cases of the letters, which format_double never writes.
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

}  // namespace fxopt
