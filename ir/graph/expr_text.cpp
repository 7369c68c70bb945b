// Symbolic integers from and to text. expr.h has the grammar.
#include <algorithm>
#include <bit>

#include "core/bytes.h"
#include "core/scan.h"
#include "core/text.h"
#include "ir/graph/expr.h"

namespace fxopt {
namespace {

constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxNodes = 65536;
constexpr size_t kMaxDigits = 1000;

struct Operator {
  std::string_view text;
  ExprKind kind;
};

// An operator comes before its prefixes, because the first match is used.
constexpr Operator kComparisons[] = {
    {"==", ExprKind::kEq}, {"!=", ExprKind::kNe}, {"<=", ExprKind::kLe},
    {">=", ExprKind::kGe}, {"<", ExprKind::kLt},  {">", ExprKind::kGt},
};
constexpr Operator kSums[] = {{"+", ExprKind::kAdd}, {"-", ExprKind::kSub}};
constexpr Operator kProducts[] = {
    {"*", ExprKind::kMul},
    {"//", ExprKind::kFloorDiv},
    {"/", ExprKind::kTrueDiv},
    {"%", ExprKind::kMod},
};
constexpr std::string_view kPower = "**";

bool is_float_word(std::string_view word) { return word == "inf" || word == "nan"; }

std::string name_text(std::string_view name) {
  bool is_plain = !name.empty() && is_letter(name[0]) && !is_float_word(name);
  for (const char c : name) is_plain = is_plain && is_dotted_word(c);
  return is_plain ? std::string(name) : quote(name);
}

// A recursive descent parser. After a failure, functions return an invalid id, and error()
// describes the failure.
class Parser {
 public:
  Parser(ExprTable& table, Interner& strings, std::string_view text) : table_(table), strings_(strings), text_(text) {}

  ExprId parse_all() {
    const ExprId id = parse_comparison();
    if (!id.is_valid()) return id;
    skip_space();
    if (pos_ == text_.size()) return id;
    return fail("expected an operator or the end, found " + found());
  }

  Error& error() { return error_; }

 private:
  size_t space_end(size_t position) const {
    return std::min(text_.find_first_not_of(" \t\r\n", position), text_.size());
  }
  void skip_space() { pos_ = space_end(pos_); }

  // Returns the next character that is not a space, or 0 at the end.
  char peek() {
    skip_space();
    return pos_ < text_.size() ? text_[pos_] : '\0';
  }

  bool accept(std::string_view token) {
    skip_space();
    if (!text_.substr(pos_).starts_with(token)) return false;
    pos_ += token.size();
    return true;
  }

  std::string found() const {
    if (pos_ >= text_.size()) return "the end";
    const size_t length = utf8_length(text_.substr(pos_));
    return quote(text_.substr(pos_, length == 0 ? 1 : length));
  }

  ExprId fail(std::string message, ErrorCode code = ErrorCode::kBadExpression) { return fail_at(pos_, message, code); }

  ExprId fail_at(size_t position, std::string message, ErrorCode code = ErrorCode::kBadExpression) {
    error_ = Error{code, "expression: " + message, "", {}};
    error_.where.column = position + 1;
    return ExprId();
  }

  // Counts operators, constants and symbols, including repeated ones. The limit bounds the work,
  // not the number of distinct nodes.
  ExprId count(ExprId id) {
    if (++num_nodes_ <= kMaxNodes) return id;
    return fail("more than " + std::to_string(kMaxNodes) + " operands and operators", ErrorCode::kLimit);
  }

  // Parses one level deeper: in brackets, in arguments, and in operands after "-" and "**".
  ExprId nested(ExprId (Parser::*parse)()) {
    if (depth_ == kMaxDepth) {
      return fail("nested more than " + std::to_string(kMaxDepth) + " levels deep", ErrorCode::kLimit);
    }
    ++depth_;
    const ExprId id = (this->*parse)();
    --depth_;
    return id;
  }

  template <size_t n>
  const Operator* accept_any(const Operator (&operators)[n]) {
    for (const Operator& candidate : operators) {
      if (accept(candidate.text)) return &candidate;
    }
    return nullptr;
  }

  // operand { operator operand }, grouped to the left.
  template <size_t n>
  ExprId parse_chain(const Operator (&operators)[n], ExprId (Parser::*parse_operand)()) {
    ExprId left = (this->*parse_operand)();
    while (left.is_valid()) {
      const Operator* found_operator = accept_any(operators);
      if (found_operator == nullptr) break;
      const ExprId right = (this->*parse_operand)();
      if (!right.is_valid()) return right;
      left = count(table_.make(found_operator->kind, {left, right}));
    }
    return left;
  }

  ExprId parse_comparison() {
    const ExprId left = parse_sum();
    if (!left.is_valid()) return left;
    const Operator* comparison = accept_any(kComparisons);
    if (comparison == nullptr) return left;
    const ExprId right = parse_sum();
    if (!right.is_valid()) return right;
    skip_space();
    const size_t begin = pos_;
    if (accept_any(kComparisons) != nullptr) return fail_at(begin, "comparisons do not chain; put one in brackets");
    return count(table_.make(comparison->kind, {left, right}));
  }

  ExprId parse_sum() { return parse_chain(kSums, &Parser::parse_product); }
  ExprId parse_product() { return parse_chain(kProducts, &Parser::parse_unary); }

  ExprId parse_unary() {
    if (!accept("-")) return parse_power();
    // -2 is a constant, but -2 ** x is -(2 ** x).
    if (starts_literal() && !text_.substr(space_end(literal_end())).starts_with(kPower)) {
      return parse_literal(Sign::kNegative);
    }
    const ExprId operand = nested(&Parser::parse_unary);
    return operand.is_valid() ? count(table_.make(ExprKind::kNeg, {operand})) : operand;
  }

  ExprId parse_power() {
    const ExprId base = parse_atom();
    if (!base.is_valid() || !accept(kPower)) return base;
    const ExprId exponent = nested(&Parser::parse_unary);
    return exponent.is_valid() ? count(table_.make(ExprKind::kPow, {base, exponent})) : exponent;
  }

  ExprId parse_atom() {
    const char c = peek();
    if (starts_literal()) return parse_literal(Sign::kPositive);
    if (is_letter(c)) {
      const std::string name(word());
      pos_ += name.size();
      return parse_named(name);
    }
    if (c == '"') return parse_quoted();
    if (c != '(') return fail("expected a number, a symbol or a bracket, found " + found());
    ++pos_;
    const ExprId id = nested(&Parser::parse_comparison);
    if (!id.is_valid() || accept(")")) return id;
    return fail("expected an operator or \")\", found " + found());
  }

  ExprId parse_quoted() {
    const size_t begin = pos_;
    size_t end = begin + 1;
    while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) return fail("the quotation mark is not closed");
    const std::optional<std::string> name = unquote(text_.substr(begin, end + 1 - begin));
    if (!name.has_value()) return fail("the quoted name has a bad escape");
    pos_ = end + 1;
    return parse_named(*name);
  }

  // Parses a call if a bracket follows, and a symbol otherwise. `name` has been read.
  ExprId parse_named(const std::string& name) {
    const StringId id = strings_.intern(name);
    if (!accept("(")) return count(table_.symbol(id));
    std::vector<ExprId> arguments;
    if (!accept(")")) {
      do {
        arguments.push_back(nested(&Parser::parse_comparison));
        if (!arguments.back().is_valid()) return ExprId();
      } while (accept(","));
      if (!accept(")")) return fail("expected \",\" or \")\", found " + found());
    }
    return count(table_.make(ExprKind::kCall, std::move(arguments), id));
  }

  std::string_view word() const {
    size_t end = pos_;
    while (end < text_.size() && is_dotted_word(text_[end])) ++end;
    return text_.substr(pos_, end - pos_);
  }

  bool starts_literal() { return is_digit(peek()) || is_float_word(word()); }

  // A literal includes all digits, letters, points and the sign of an exponent. Therefore "12ab" is
  // one bad number, not the number 12 and a symbol.
  size_t literal_end() const {
    size_t end = pos_;
    while (end < text_.size()) {
      const bool is_exponent_sign = (text_[end] == '+' || text_[end] == '-') && end > pos_ && is_digit(text_[pos_]) &&
                                    (text_[end - 1] == 'e' || text_[end - 1] == 'E');
      if (!is_dotted_word(text_[end]) && !is_exponent_sign) break;
      ++end;
    }
    return end;
  }

  enum class Sign { kPositive, kNegative };

  ExprId parse_literal(Sign sign) {
    const size_t begin = pos_;
    pos_ = literal_end();
    const std::string token = (sign == Sign::kNegative ? "-" : "") + std::string(text_.substr(begin, pos_ - begin));
    if (token.find_first_not_of("-0123456789") == std::string::npos) {
      if (const std::optional<int64_t> value = parse_int64(token); value.has_value()) {
        return count(table_.constant(*value));
      }
      const std::string digits = token.substr(token.find_first_not_of("-0"));
      if (digits.size() > kMaxDigits) return fail_at(begin, "the integer has more than 1,000 digits");
      return count(table_.big_integer(strings_.intern(sign == Sign::kNegative ? "-" + digits : digits)));
    }
    const std::optional<double> value = parse_double(token);
    return value.has_value() ? count(table_.floating(*value))
                             : fail_at(begin, quote(token) + " is not a 64-bit number");
  }

  ExprTable& table_;
  Interner& strings_;
  std::string_view text_;
  size_t pos_ = 0;
  size_t depth_ = 0;
  size_t num_nodes_ = 0;
  Error error_;
};

// How tightly an expression binds, from the loosest. The numbers follow the levels of the grammar.
enum Level { kComparison, kSum, kProduct, kUnary, kPowerLevel, kAtom };

struct Syntax {
  std::string_view text;
  Level level;
  Level left;  // the loosest operand that needs no brackets
  Level right;
};

Syntax syntax_of(ExprKind kind) {
  for (const Operator& candidate : kComparisons) {
    if (candidate.kind == kind) return {candidate.text, kComparison, kSum, kSum};
  }
  for (const Operator& candidate : kSums) {
    if (candidate.kind == kind) return {candidate.text, kSum, kSum, kProduct};
  }
  for (const Operator& candidate : kProducts) {
    if (candidate.kind == kind) return {candidate.text, kProduct, kProduct, kUnary};
  }
  return {kPower, kPowerLevel, kAtom, kUnary};
}

std::string literal_text(const Expr& expr, const Interner& strings) {
  if (expr.kind == ExprKind::kInt) return std::to_string(expr.value);
  if (expr.kind == ExprKind::kBigInt) return std::string(strings[expr.name]);
  return format_double(std::bit_cast<double>(expr.value));
}

bool is_literal(const Expr& expr) {
  return expr.kind == ExprKind::kInt || expr.kind == ExprKind::kBigInt || expr.kind == ExprKind::kFloat;
}

bool is_negative_literal(const Expr& expr, const Interner& strings) {
  if (expr.kind == ExprKind::kBigInt) return strings[expr.name].starts_with('-');
  return is_literal(expr) && expr.value < 0;  // the sign bit of a binary64 as well
}

// Output that is still to be printed: text, or an expression. The expression gets brackets if it
// binds more loosely than `level`.
struct Piece {
  std::string_view text;
  ExprId expr;
  Level level = kComparison;
};

class Printer {
 public:
  Printer(const ExprTable& table, const Interner& strings) : table_(table), strings_(strings) {}

  // Uses its own stack, because trees built by passes may be deep.
  std::string print(ExprId id) {
    pending_.push_back({"", id, kComparison});
    while (!pending_.empty()) {
      const Piece piece = pending_.back();
      pending_.pop_back();
      out_ += piece.text;
      if (piece.expr.is_valid()) print_expr(table_[piece.expr], piece.level);
    }
    return std::move(out_);
  }

 private:
  void push(std::string_view text) { pending_.push_back({text, ExprId(), kComparison}); }
  void push(ExprId id, Level level) { pending_.push_back({"", id, level}); }

  // Appends brackets if an expression of level `own` needs them where level `needed` is required.
  void open(Level own, Level needed) {
    if (own >= needed) return;
    out_ += '(';
    push(")");
  }

  void print_expr(const Expr& expr, Level needed) {
    switch (expr.kind) {
      case ExprKind::kInt:
      case ExprKind::kBigInt:
      case ExprKind::kFloat:
        open(is_negative_literal(expr, strings_) ? kUnary : kAtom, needed);
        out_ += literal_text(expr, strings_);
        break;
      case ExprKind::kSymbol:
        out_ += name_text(strings_[expr.name]);
        break;
      case ExprKind::kCall:
        print_call(expr);
        break;
      case ExprKind::kNeg:
        open(kUnary, needed);
        out_ += '-';
        print_negated(expr.inputs[0]);
        break;
      default: {
        const Syntax syntax = syntax_of(expr.kind);
        open(syntax.level, needed);
        push(expr.inputs[1], syntax.right);
        push(" ");
        push(syntax.text);
        push(" ");
        push(expr.inputs[0], syntax.left);
      }
    }
  }

  // A positive literal right after the sign would be read as a negative literal.
  void print_negated(ExprId operand) {
    const Expr& expr = table_[operand];
    const bool reads_as_literal = is_literal(expr) && !is_negative_literal(expr, strings_);
    if (reads_as_literal) {
      out_ += '(';
      push(")");
    }
    push(operand, kUnary);
  }

  void print_call(const Expr& expr) {
    out_ += name_text(strings_[expr.name]) + "(";
    push(")");
    for (size_t i = expr.inputs.size(); i-- > 0;) {
      push(expr.inputs[i], kComparison);
      if (i > 0) push(", ");
    }
  }

  const ExprTable& table_;
  const Interner& strings_;
  std::vector<Piece> pending_;
  std::string out_;
};

}  // namespace

Result<ExprId> ExprTable::parse(std::string_view text) {
  Parser parser(*this, *strings_, text);
  const ExprId id = parser.parse_all();
  if (!id.is_valid()) return std::move(parser.error());
  return id;
}

std::string ExprTable::to_string(ExprId id) const { return Printer(*this, *strings_).print(id); }

}  // namespace fxopt
