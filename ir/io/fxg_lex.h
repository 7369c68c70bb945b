#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.h"

// The tokens of the text form. The grammar is in README.md beside this file.

namespace fxopt {

// The bits of the NaN that is written as "nan"; others are written as bits.
inline constexpr uint64_t kPlainNan = 0x7ff8000000000000;

enum class TokenKind : uint8_t {
  kEnd,
  kIdentifier,  // [A-Za-z_][A-Za-z0-9_.]*
  kInteger,     // decimal, with a sign when it is negative
  kFloat,       // decimal with a point or an exponent, or -inf
  kHex,         // 0x and hexadecimal digits
  kString,      // the quotes included
  kEllipsis,    // ...
  kPunct,       // one of ( ) [ ] { } , : = % @ $ + ~ ?
  kBad,         // anything else; Lexer::problem() says what is wrong
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  size_t offset = 0;  // of the first byte
  size_t length = 0;
};

// True when `text` can stand without quotes as the name of a node, a graph or a keyword argument.
bool is_identifier(std::string_view text);
// True when `text` can stand without quotes after the @ of a tensor.
bool is_bare_device(std::string_view text);

// True when `text` can stand without quotes as what a node calls: an identifier that is no word of the grammar there.
bool is_plain_target(std::string_view text);

// Cuts a text into tokens, one at a time. Never fails: what is no token is kBad, which the parser reports when it meets
// it, because expressions and device names follow rules of their own and are read from the bytes.
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
  // The byte that begins the next token, without reading it; '\0' at the end.
  char next_byte() const;
  // Goes back to a token met before.
  void rewind(const Token& token);

  // The expression that begins at `offset`: up to the first comma or closing bracket outside parentheses, without the
  // space around it. The current token becomes the one behind it.
  std::string_view take_expression(size_t offset);
  // The bare device name right behind the current token (an @), which may be empty. The current token becomes the one
  // behind it.
  std::string_view take_device();

 private:
  size_t skip_space(size_t at) const;
  void read_number(size_t begin);
  void read_string(size_t begin);
  size_t string_end(size_t begin) const;
  void set(TokenKind kind, size_t begin, size_t end);
  void set_bad(size_t begin, size_t end, std::string_view problem);

  std::string_view source_;
  size_t position_ = 0;  // behind the current token
  Token token_;
  std::string_view problem_;
};

// Line and column of `offset`, counted from 1, the column in bytes, and the line with a caret under it (a window of it
// when it is long). O(offset).
Where locate(std::string_view source, size_t offset, const std::string& file);

}  // namespace fxopt
