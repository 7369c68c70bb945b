#include "core/bytes.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace fxopt {
namespace {

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kHex = "0123456789abcdef";

uint32_t byte_at(std::string_view text, size_t index) { return static_cast<unsigned char>(text[index]); }

// Returns 0 to 63, or -1 for a character outside the alphabet.
int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

void append_hex_escape(std::string& out, uint32_t byte) {
  out += "\\x";
  out += kHex[byte >> 4];
  out += kHex[byte & 15];
}

// Returns the character that a one-letter escape denotes, or 0.
char simple_escape(char letter) {
  switch (letter) {
    case '"':
    case '\\':
      return letter;
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    default:
      return 0;
  }
}

}  // namespace

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string to_base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = bytes.size() - i < 3 ? bytes.size() - i : 3;
    uint32_t group = byte_at(bytes, i) << 16;
    if (count > 1) group |= byte_at(bytes, i + 1) << 8;
    if (count > 2) group |= byte_at(bytes, i + 2);
    out += kBase64[group >> 18];
    out += kBase64[(group >> 12) & 63];
    out += count > 1 ? kBase64[(group >> 6) & 63] : '=';
    out += count > 2 ? kBase64[group & 63] : '=';
  }
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const size_t digits = i + 4 == text.size() ? 4 - padding : 4;
    uint32_t group = 0;
    for (size_t j = 0; j < 4; ++j) {
      const int digit = j < digits ? base64_digit(text[i + j]) : 0;
      if (digit < 0) return std::nullopt;
      group = group << 6 | static_cast<uint32_t>(digit);
    }
    // Unused bits must be zero, so that each byte string has only one encoding.
    if (digits < 4 && (group & (digits == 3 ? 0xffU : 0xffffU)) != 0) return std::nullopt;
    for (size_t j = 0; j + 1 < digits; ++j) out += static_cast<char>(group >> (16 - 8 * j) & 0xff);
  }
  return out;
}

size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const uint32_t first = byte_at(text, 0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte_at(text, i) & 0xc0) != 0x80) return 0;
  }
  const uint32_t second = byte_at(text, 1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool outside = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return overlong || outside ? 0 : length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  out.reserve(text.size() + 2);
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const char c = text.front();
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n' || c == '\t' || c == '\r') {
      out += c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r";
    } else if (length == 0 || byte_at(text, 0) < 0x20 || c == 0x7f) {
      append_hex_escape(out, byte_at(text, 0));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
  return out;
}

namespace {

std::string escaped(std::string_view text, bool keeps_line_feeds) {
  std::string out;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const unsigned char c = static_cast<unsigned char>(text.front());
    const bool is_kept = length > 0 && ((c >= 0x20 && c != 0x7f) || (c == '\n' && keeps_line_feeds));
    const std::string literal = is_kept ? std::string() : quote(text.substr(0, 1));
    out += is_kept ? text.substr(0, length) : std::string_view(literal).substr(1, literal.size() - 2);
    text.remove_prefix(std::max(length, size_t{1}));
  }
  return out;
}

}  // namespace

std::string printable_line(std::string_view text) { return escaped(text, false); }
std::string printable_lines(std::string_view text) { return escaped(text, true); }

std::optional<std::string> unquote(std::string_view literal) {
  if (literal.size() < 2 || literal.front() != '"' || literal.back() != '"') return std::nullopt;
  const std::string_view body = literal.substr(1, literal.size() - 2);
  std::string out;
  out.reserve(body.size());
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i] == '"' || body[i] == '\n') return std::nullopt;
    if (body[i] != '\\') {
      out += body[i];
      continue;
    }
    if (++i == body.size()) return std::nullopt;
    if (body[i] == 'x') {
      const int high = i + 2 < body.size() ? hex_digit(body[i + 1]) : -1;
      const int low = i + 2 < body.size() ? hex_digit(body[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(high << 4 | low);
      i += 2;
      continue;
    }
    const char c = simple_escape(body[i]);
    if (c == 0) return std::nullopt;
    out += c;
  }
  return out;
}

std::string human_bytes(double bytes) {
  constexpr std::array<std::string_view, 7> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  // Compares the size as it would be rounded, so that 1048575 becomes 1.00 MiB, not 1024.00 KiB.
  while (unit + 1 < kUnits.size() && std::fabs(bytes) >= (unit == 0 ? 1023.5 : 1023.995)) {
    bytes /= 1024;
    ++unit;
  }
  std::array<char, 400> text{};  // the longest binary64 has 309 digits before the point
  const std::to_chars_result end =
      std::to_chars(text.data(), text.data() + text.size(), bytes, std::chars_format::fixed, unit == 0 ? 0 : 2);
  return std::string(text.data(), end.ptr) + " " + std::string(kUnits[unit]);
}

}  // namespace fxopt
