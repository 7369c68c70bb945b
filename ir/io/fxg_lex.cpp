#include "ir/io/fxg_lex.h"

#include <algorithm>
#include <iterator>

#include "core/bytes.h"
#include "core/scan.h"

namespace fxopt {
namespace {

bool is_device_byte(char c) { return is_dotted_word(c) || c == ':' || c == '-'; }

constexpr std::string_view kPunctuation = "()[]{},:=%@$+~?";
constexpr size_t kExcerptBytes = 160;

}  // namespace

bool is_identifier(std::string_view text) {
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), is_dotted_word);
}

bool is_bare_device(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_device_byte);
}

bool is_plain_target(std::string_view text) {
  constexpr std::string_view kReserved[] = {"call", "call_method", "call_module", "get_attr",
                                            "kind", "output",      "placeholder", "return"};
  return is_identifier(text) && std::find(std::begin(kReserved), std::end(kReserved), text) == std::end(kReserved);
}

void Lexer::set(TokenKind kind, size_t begin, size_t end) {
  token_ = Token{kind, begin, end - begin};
  position_ = end;
}

void Lexer::set_bad(size_t begin, size_t end, std::string_view problem) {
  set(TokenKind::kBad, begin, end);
  problem_ = problem;
}

size_t Lexer::skip_space(size_t at) const {
  while (at < source_.size()) {
    if (is_space(source_[at])) {
      ++at;
    } else if (source_[at] == '#') {
      at = std::min(source_.find('\n', at), source_.size());
    } else {
      break;
    }
  }
  return at;
}

char Lexer::next_byte() const {
  const size_t at = skip_space(position_);
  return at < source_.size() ? source_[at] : '\0';
}

void Lexer::rewind(const Token& token) {
  token_ = token;
  position_ = token.offset + token.length;
}

void Lexer::advance() {
  const size_t begin = skip_space(position_);
  if (begin == source_.size()) return set(TokenKind::kEnd, begin, begin);
  const char c = source_[begin];
  if (is_letter(c)) {
    size_t end = begin + 1;
    while (end < source_.size() && is_dotted_word(source_[end])) ++end;
    return set(TokenKind::kIdentifier, begin, end);
  }
  if (is_digit(c) || c == '-') return read_number(begin);
  if (c == '"') return read_string(begin);
  if (source_.substr(begin, 3) == "...") return set(TokenKind::kEllipsis, begin, begin + 3);
  if (kPunctuation.find(c) != std::string_view::npos) return set(TokenKind::kPunct, begin, begin + 1);
  set_bad(begin, begin + 1, "no token starts with this character");
}

void Lexer::read_number(size_t begin) {
  size_t end = begin;
  const auto digits = [&] {
    const size_t first = end;
    while (end < source_.size() && is_digit(source_[end])) ++end;
    return end > first;
  };
  if (source_[end] == '-') {
    ++end;
    if (source_.substr(end, 3) == "inf") return set(TokenKind::kFloat, begin, end + 3);
  } else if (source_.substr(end, 2) == "0x") {
    end += 2;
    while (end < source_.size() && hex_digit(source_[end]) >= 0) ++end;
    return set(TokenKind::kHex, begin, end);
  }
  if (!digits()) return set_bad(begin, end, "a minus sign needs a number after it");
  TokenKind kind = TokenKind::kInteger;
  if (end < source_.size() && source_[end] == '.') {
    kind = TokenKind::kFloat;
    ++end;
    digits();
  }
  if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
    kind = TokenKind::kFloat;
    ++end;
    if (end < source_.size() && (source_[end] == '-' || source_[end] == '+')) ++end;
    if (!digits()) return set_bad(begin, end, "the exponent has no digits");
  }
  if (end < source_.size() && is_letter(source_[end])) return set_bad(begin, end, "a letter follows the number");
  set(kind, begin, end);
}

void Lexer::read_string(size_t begin) {
  const size_t end = string_end(begin);
  if (end == begin) return set_bad(begin, begin + 1, "this string is not closed on its line");
  set(TokenKind::kString, begin, end);
}

// Returns the offset after the string that begins at `begin`, or `begin` if it is not closed on its
// line.
size_t Lexer::string_end(size_t begin) const {
  for (size_t at = begin + 1; at < source_.size() && source_[at] != '\n'; ++at) {
    if (source_[at] == '"') return at + 1;
    if (source_[at] == '\\') ++at;
  }
  return begin;
}

std::string_view Lexer::take_expression(size_t offset) {
  size_t end = offset;
  for (int depth = 0; end < source_.size();) {
    const char c = source_[end];
    if (c == '"') {
      const size_t behind = string_end(end);
      if (behind == end) break;
      end = behind;
      continue;
    }
    if ((c == ',' || c == ')') && depth == 0) break;
    if (std::string_view("[]{}#").find(c) != std::string_view::npos) break;
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    ++end;
  }
  position_ = end;
  advance();
  while (offset < end && is_space(source_[offset])) ++offset;
  while (end > offset && is_space(source_[end - 1])) --end;
  return source_.substr(offset, end - offset);
}

std::string_view Lexer::take_device() {
  const size_t begin = position_;
  while (position_ < source_.size() && is_device_byte(source_[position_])) ++position_;
  const std::string_view device = source_.substr(begin, position_ - begin);
  advance();
  return device;
}

Where locate(std::string_view source, size_t offset, const std::string& file) {
  offset = std::min(offset, source.size());
  const TextPosition position = text_position(source, offset);
  const size_t line_begin = offset - (position.column - 1);
  const size_t line_end = std::min(source.find('\n', offset), source.size());
  Where where;
  where.file = file;
  where.line = position.line;
  where.column = position.column;
  where.byte = offset;

  const size_t begin = offset - line_begin > kExcerptBytes / 2 ? offset - kExcerptBytes / 2 : line_begin;
  const std::string_view window = source.substr(begin, std::min(line_end - begin, kExcerptBytes));
  const bool shows_utf8 = is_utf8(window);
  std::string caret;
  for (size_t i = 0; i < window.size(); ++i) {
    const unsigned char byte = static_cast<unsigned char>(window[i]);
    const bool printable = byte == '\t' || (byte >= 0x20 && byte < 0x7f) || (byte >= 0x80 && shows_utf8);
    where.excerpt += printable ? window[i] : '?';
    const bool continues = shows_utf8 && (byte & 0xC0) == 0x80;
    if (begin + i < offset && !continues) caret += byte == '\t' ? '\t' : ' ';
  }
  where.excerpt += '\n' + caret + '^';
  return where;
}

}  // namespace fxopt
