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
  kString,      // includes the quotes
  kEllipsis,    // ...
  kPunct,       // one of ( ) [ ] { } , : = % @ $ + ~ ?
  kBad,         // anything else; Lexer::problem() names the fault
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  size_t offset = 0;  // the first byte
  size_t length = 0;
};

// Returns true if `text` can be the name of a node, a graph or a keyword argument without quotes.
bool is_identifier(std::string_view text);
// Returns true if `text` can be written without quotes as the device after the @ of a tensor.
bool is_bare_device(std::string_view text);

// Returns true if `text` can be a call's target without quotes. The text must be an identifier, and
// must not be a reserved word of the grammar, such as `placeholder`.
bool is_plain_target(std::string_view text);

// Splits a text into tokens, one at a time. The lexer never fails. Text that is not a token becomes
// a kBad token, and the parser reports this token. Expressions and device names have their own
// rules, so they are read directly from the bytes.
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
  // Returns the first byte of the next token without reading the token. Returns '\0' at the end of
  // the text.
  char next_byte() const;
  // Goes back to a token that was read before.
  void rewind(const Token& token);

  // Returns the expression that begins at `offset`. The expression ends before the first comma or
  // closing bracket outside parentheses. Surrounding space is removed. The token after the
  // expression becomes the current token.
  std::string_view take_expression(size_t offset);
  // Returns the bare device name right after the current token, which is an @. The name may be
  // empty. The token after the name becomes the current token.
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

// Returns the line and column of `offset`, and the text of the line with a caret under the place. A
// long line is shortened to a window around the place. Lines and columns are numbered from 1, and a
// column is a byte. O(offset).
Where locate(std::string_view source, size_t offset, const std::string& file);

}  // namespace fxopt
