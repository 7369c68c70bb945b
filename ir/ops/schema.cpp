#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/scan.h"
#include "core/text.h"
#include "ir/ops/op.h"

// The grammar, as the framework prints it:
//
//   schema     := name ['.' overload] '(' [arg {',' arg}] ')' '->' returns
//   arg        := '*' | '...' | type name ['=' default]
//   returns    := '...' | return | '(' [return {',' return}] ')' | '(' '...' ')'
//   return     := type [name]
//   type       := base {suffix}
//   suffix     := '[' [digits] ']' | '?' | annotation
//   base       := identifier {'.' identifier} | container | tuple
//   annotation := '(' set ['!'] ['->' set] ')'       where a set is names joined by '|', or '*'
//   default    := word | string | '[' [default {',' default}] ']'
//
// Containers (Dict, Future, ...) and tuples are stored as text, with their contents. The parser is
// not recursive.

namespace fxopt {
namespace {

constexpr size_t kMaxText = size_t{1} << 16;
constexpr size_t kMaxArgs = 255;  // positions are stored in eight bits
constexpr size_t kMaxDepth = 16;  // nested brackets of a container type or of a default value
constexpr size_t kExcerptReach = 60;

// Characters of a number, a boolean, None or an enumerator's name.
bool is_value(char c) { return is_word(c) || c == '.' || c == '-' || c == '+'; }

// Whether parentheses after the type contain types. After any other type, they contain an alias
// annotation.
bool is_container(std::string_view type) {
  constexpr std::string_view kContainers[] = {"Dict", "Future", "RRef", "Await", "Tuple", "Union", "List", "Optional"};
  return std::find(std::begin(kContainers), std::end(kContainers), type) != std::end(kContainers);
}

// Returns the integers of a list such as "[1, -2]", or nothing if the list contains anything else.
std::optional<std::vector<int64_t>> read_integers(std::string_view list) {
  std::vector<int64_t> integers;
  list = list.substr(1, list.size() - 2);
  while (true) {
    while (!list.empty() && is_space(list.front())) list.remove_prefix(1);
    if (list.empty()) return integers;
    const size_t end = std::min(list.find(','), list.size());
    std::string_view item = list.substr(0, end);
    while (!item.empty() && is_space(item.back())) item.remove_suffix(1);
    const std::optional<int64_t> integer = parse_int64(item);
    if (!integer.has_value()) return std::nullopt;
    integers.push_back(*integer);
    list.remove_prefix(std::min(end + 1, list.size()));
  }
}

SchemaDefault read_default(std::string_view text) {
  using Kind = SchemaDefault::Kind;
  SchemaDefault value;
  value.text = text;
  if (text == "None") {
    value.kind = Kind::kNone;
  } else if (text == "True" || text == "False") {
    value.kind = Kind::kBool;
    value.integer = text == "True" ? 1 : 0;
  } else if (text.front() == '"' || text.front() == '\'') {
    value.kind = Kind::kString;
  } else if (text.front() == '[') {
    std::optional<std::vector<int64_t>> integers = read_integers(text);
    value.kind = integers.has_value() ? Kind::kInts : Kind::kOther;
    if (integers.has_value()) value.integers = std::move(*integers);
  } else if (const std::optional<int64_t> integer = parse_int64(text); integer.has_value()) {
    value.kind = Kind::kInt;
    value.integer = *integer;
  } else if (const std::optional<double> real = parse_double(text); real.has_value()) {
    value.kind = Kind::kFloat;
    value.real = *real;
  } else {
    value.kind = Kind::kWord;
  }
  return value;
}

class SchemaParser {
 public:
  explicit SchemaParser(std::string_view text) : text_(text) {}

  Result<Schema> parse() {
    if (text_.size() > kMaxText) {
      return Error{
          ErrorCode::kLimit, "schema of " + std::to_string(text_.size()) + " bytes, above the limit of 64 KiB", "", {}};
    }
    Schema schema;
    if (parse_name(schema) && parse_args(schema) && parse_returns(schema) && parse_end()) return schema;
    return std::move(*error_);
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  // Skips spaces. If `token` is next, skips it and returns true.
  bool accept(std::string_view token) {
    skip_space();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  bool expect(std::string_view token, std::string_view where) {
    return accept(token) || fail("expected '" + std::string(token) + "' " + std::string(where));
  }
  std::string_view take_word() {
    skip_space();
    const size_t begin = at_;
    while (is_word(peek())) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  // Records the error, if it is the first. Always returns false, so callers can return the result.
  bool fail(std::string message, ErrorCode code = ErrorCode::kSyntax) {
    if (error_) return false;
    const size_t begin = at_ > kExcerptReach ? at_ - kExcerptReach : 0;
    std::string excerpt(text_.substr(begin, at_ - begin + kExcerptReach));
    for (char& c : excerpt) c = c >= ' ' && c <= '~' ? c : ' ';
    error_ = Error{code, "operator schema: " + std::move(message), "write the schema as the framework prints it", {}};
    error_->where.column = at_ + 1;
    error_->where.excerpt = excerpt + "\n" + std::string(at_ - begin, ' ') + "^";
    return false;
  }

  bool parse_name(Schema& schema) {
    skip_space();
    const size_t begin = at_;
    while (is_word(peek()) || text_.substr(at_).starts_with("::")) at_ += is_word(peek()) ? 1 : 2;
    schema.name = text_.substr(begin, at_ - begin);
    if (schema.name.empty()) return fail("expected an operator name");
    if (peek() != '.') return true;
    ++at_;
    schema.overload = take_word();
    return !schema.overload.empty() || fail("expected an overload name after '.'");
  }

  bool parse_args(Schema& schema) {
    if (!expect("(", "before the arguments")) return false;
    if (accept(")")) return true;
    bool keyword_only = false;
    do {
      if (schema.variadic) return fail("'...' must be the last argument");
      if (accept("...")) {
        schema.variadic = true;
      } else if (accept("*")) {
        if (keyword_only) return fail("'*' occurs twice among the arguments");
        keyword_only = true;
      } else {
        SchemaArg arg;
        arg.keyword_only = keyword_only;
        if (!parse_arg(arg) || !has_room(schema.args.size())) return false;
        schema.args.push_back(std::move(arg));
      }
    } while (accept(","));
    return expect(")", "after the arguments");
  }

  bool has_room(size_t count) {
    return count < kMaxArgs || fail("more than " + std::to_string(kMaxArgs) + " arguments", ErrorCode::kLimit);
  }

  bool parse_arg(SchemaArg& arg) {
    if (!parse_type(arg)) return false;
    arg.name = take_word();
    if (arg.name.empty()) return fail("expected the argument's name after its type");
    return !accept("=") || parse_default(arg.default_value);
  }

  bool parse_returns(Schema& schema) {
    if (!expect("->", "before the returns")) return false;
    if (accept("...")) return true;
    if (!accept("(")) {
      schema.returns.emplace_back();
      return parse_return(schema.returns.back());
    }
    if (accept(")")) return true;
    if (accept("...")) return expect(")", "after the returns");
    do {
      if (!has_room(schema.returns.size())) return false;
      schema.returns.emplace_back();
      if (!parse_return(schema.returns.back())) return false;
    } while (accept(","));
    return expect(")", "after the returns");
  }

  bool parse_return(SchemaArg& value) {
    if (!parse_type(value)) return false;
    value.name = take_word();
    return true;
  }

  bool parse_end() {
    skip_space();
    return at_ == text_.size() || fail("unexpected text after the schema");
  }

  bool parse_type(SchemaArg& arg) {
    skip_space();
    if (peek() == '(') {
      if (!parse_nested_types(arg)) return false;
    } else {
      const size_t begin = at_;
      while (is_word(peek()) || (peek() == '.' && at_ > begin)) ++at_;
      arg.type = text_.substr(begin, at_ - begin);
      if (arg.type.empty() || is_digit(arg.type.front())) return fail("expected a type");
      if (peek() == '(' && is_container(arg.type) && !parse_nested_types(arg)) return false;
    }
    for (;;) {
      if (peek() == '(') {
        if (!parse_annotation(arg)) return false;
      } else if (peek() == '[') {
        const size_t begin = at_++;
        while (is_digit(peek())) ++at_;
        if (!expect("]", "after the length of a list type")) return false;
        arg.type += text_.substr(begin, at_ - begin);
      } else if (peek() == '?') {
        arg.type += text_[at_++];
      } else {
        return true;
      }
    }
  }

  // Stores the text between parentheses without parsing the types in it.
  bool parse_nested_types(SchemaArg& arg) {
    const size_t begin = at_;
    size_t depth = 0;
    do {
      const char c = peek();
      if (c == '(' && ++depth > kMaxDepth) return fail("the types are nested too deeply", ErrorCode::kLimit);
      if (c == ')') --depth;
      if (!is_word(c) && !is_space(c) && std::string_view("()[],.?!|*->").find(c) == std::string_view::npos) {
        return fail("expected ')' after the nested types");
      }
      arg.is_write |= c == '!';
      arg.is_wildcard |= c == '*';
      ++at_;
    } while (depth > 0);
    arg.type += text_.substr(begin, at_ - begin);
    return true;
  }

  bool parse_annotation(SchemaArg& arg) {
    ++at_;
    const bool is_first = arg.alias_set.empty();
    for (bool is_after = false;; is_after = true) {  // the sets before and after '->'
      do {
        if (accept("*")) {
          arg.is_wildcard = true;
          continue;
        }
        const std::string_view name = take_word();
        if (name.empty()) return fail("expected the name of an alias set");
        if (!is_after && is_first) (arg.alias_set += arg.alias_set.empty() ? "" : "|") += name;
      } while (accept("|"));
      if (accept("!")) arg.is_write = true;
      if (is_after || !accept("->")) break;
    }
    return expect(")", "after the alias annotation");
  }

  // Parses a word, a string or a list of defaults.
  bool parse_default(SchemaDefault& value) {
    skip_space();
    const size_t begin = at_;
    size_t depth = 0;
    bool wants_value = true;
    bool may_close = false;
    do {
      skip_space();
      const char c = peek();
      if (c == '[' && wants_value) {
        if (++depth > kMaxDepth) return fail("the default value is nested too deeply", ErrorCode::kLimit);
        ++at_;
        may_close = true;
      } else if (c == ']' && depth > 0 && (!wants_value || may_close)) {
        --depth;
        ++at_;
        wants_value = may_close = false;
      } else if (c == ',' && !wants_value) {
        ++at_;
        wants_value = true;
        may_close = false;
      } else if (wants_value && (is_value(c) || c == '"' || c == '\'')) {
        if (!parse_atom()) return false;
        wants_value = may_close = false;
      } else {
        return fail(wants_value ? "expected a default value" : "expected ',' or ']' in a default value");
      }
    } while (depth > 0);
    value = read_default(text_.substr(begin, at_ - begin));
    return true;
  }

  bool parse_atom() {
    const char quote = peek();
    if (is_value(quote)) {
      while (is_value(peek())) ++at_;
      return true;
    }
    const size_t begin = at_++;
    while (at_ < text_.size() && text_[at_] != quote) at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size()) {
      at_ = begin;
      return fail("the closing quote of a string is missing");
    }
    ++at_;
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
  std::optional<Error> error_;
};

}  // namespace

bool Schema::mutates() const {
  return std::any_of(args.begin(), args.end(), [](const SchemaArg& arg) { return arg.is_write; });
}

int16_t Schema::find_arg(std::string_view wanted) const {
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].name == wanted) return static_cast<int16_t>(i);
  }
  return -1;
}

Result<Schema> parse_schema(std::string_view text) { return SchemaParser(text).parse(); }

}  // namespace fxopt
