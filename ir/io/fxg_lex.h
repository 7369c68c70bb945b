#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.h"

// The tokens of the text form. The grammar is in README.md beside this file.

namespace fxopt {

// The bits of the NaN that is written as "nan". Other NaNs are written as bits.
inline constexpr uint64_t kPlainNan = 0x7ff8000000000000;

enum class TokenKind : uint8_t {
  kEnd,
  kIdentifier,  // [A-Za-z_][A-Za-z0-9_.]*
  kInteger,     // decimal, with a sign if negative
  kFloat,       // decimal with a point or an exponent, or -inf
  kHex,         // 0x and hexadecimal digits
  kString,      // the quotes included
  kEllipsis,    // ...
  kPunct,       // one of ( ) [ ] { } , : = % @ $ + ~ ?
  kBad,         // anything else; Lexer::problem() names the fault
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  size_t offset = 0;  // the first byte
  size_t length = 0;
};

// Whether `text` can be the name of a node, a graph or a keyword argument without quotes.
bool is_identifier(std::string_view text);
// Whether `text` can follow the @ of a tensor without quotes.
bool is_bare_device(std::string_view text);

// Whether `text` can be a call's target without quotes: an identifier that is not a word of the
// grammar there.
bool is_plain_target(std::string_view text);

// Splits a text into tokens, one at a time. Never fails: anything that is no token becomes kBad,
// and the parser reports it when it reaches it. Expressions and device names have rules of their
// own and are read from the bytes.
class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) { advance(); }

  const Token& token() const { return token_; }
  std::string_view text(const Token& token) const { return source_.substr(token.offset, token.length); }
  std::string_view text() const { return text(token_); }
  std::string_view problem() const { return problem_; }
  bool is(char punct) const { return token_.kind == TokenKind::kPunct && source_[token_.offset] == punct; }
  bool is_word(std::string_view word) const { return token_.kind == TokenKind::kIdentifier && text() == word; }

  void advance();
  // The first byte of the next token, without reading the token; '\0' at the end.
  char next_byte() const;
  // Returns to a token seen before.
  void rewind(const Token& token);

  // Returns the expression that begins at `offset`. It ends before the first comma or closing
  // bracket outside parentheses, and surrounding space is removed. The token after it becomes the
  // current one.
  std::string_view take_expression(size_t offset);
  // Returns the bare device name right after the current token (an @). It may be empty. The token
  // after it becomes the current one.
  std::string_view take_device();

 private:
  size_t skip_space(size_t at) const;
  void read_number(size_t begin);
  void read_string(size_t begin);
  size_t string_end(size_t begin) const;
  void set(TokenKind kind, size_t begin, size_t end);
  void set_bad(size_t begin, size_t end, std::string_view problem);

  std::string_view source_;
  size_t position_ = 0;  // after the current token
  Token token_;
  std::string_view problem_;
};

// Returns line and column of `offset`, and the line with a caret under it (a window of a long
// line). Both count from 1, the column in bytes. O(offset).
Where locate(std::string_view source, size_t offset, const std::string& file);

}  // namespace fxopt
