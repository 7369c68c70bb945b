// Parses arguments: the content of a call's parentheses, and metadata.

#include <bit>
#include <utility>

#include "core/text.h"
#include "ir/io/fxg_parse.h"

namespace fxopt {
bool TextParser::arg(uint32_t depth) {
  const std::optional<Arg> item = plain_arg(depth);
  if (!item) return false;
  std::optional<std::string> unknown = suffix();
  if (!unknown) return false;
  stack_->push(*item, std::move(*unknown));
  return true;
}

std::optional<Arg> TextParser::plain_arg(uint32_t depth) {
  switch (lexer_.token().kind) {
    case TokenKind::kIdentifier:
      return word_arg(depth);
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return number_arg();
    case TokenKind::kString:
      return named_arg(ArgKind::kString, string_literal());
    case TokenKind::kEllipsis:
      lexer_.advance();
      return Arg::ellipsis();
    default:
      break;
  }
  if (lexer_.is('%') && !may_name_nodes_) {
    fail(ErrorCode::kBadValue, offset(), "metadata contains a node", "refer to the node by its uid: uid(57)");
    return std::nullopt;
  }
  if (lexer_.is('%')) return make_arg(node_reference(), Arg::node);
  if (accept('@')) return named_arg(ArgKind::kGraph, name());
  if ((lexer_.is('[') || lexer_.is('(') || lexer_.is('{')) && !check_depth(depth)) return std::nullopt;
  if (accept('[')) {
    const std::optional<Arg> list = sequence(ArgKind::kList, ']', depth);
    return list && expect(']') ? list : std::nullopt;
  }
  if (lexer_.is('(')) return tuple(depth);
  if (lexer_.is('{')) return dict(depth);
  unexpected("an argument");
  return std::nullopt;
}

std::optional<Arg> TextParser::number_arg() {
  if (lexer_.token().kind == TokenKind::kInteger) return make_arg(integer<int64_t>(), Arg::integer);
  return make_arg(float_bits(), Arg::floating_bits);
}

std::optional<Arg> TextParser::word_arg(uint32_t depth) {
  const std::string_view word = lexer_.text();
  if (word == "inf" || word == "nan" || word == "float") return number_arg();
  if (word == "base64") return named_arg(ArgKind::kBytes, bytes_literal());
  if (is_bool_word()) return Arg::boolean(bool_word());
  if (word != "None") return call_arg(depth);
  lexer_.advance();
  return Arg::none();
}

// Parses an argument of the form word(...).
std::optional<Arg> TextParser::call_arg(uint32_t depth) {
  struct Form {
    std::string_view word;
    bool nests;
    std::optional<Arg> (*read)(TextParser&, uint32_t depth);
  };
  using P = TextParser;
  static constexpr Form kForms[] = {
      {"sym", false, [](P& p, uint32_t) { return make_arg(p.expression(p.offset()), Arg::expr); }},
      {"group_expr", false, [](P& p, uint32_t) { return make_arg(p.expression(p.offset()), Arg::group_expr); }},
      {"dtype", false, [](P& p, uint32_t) { return make_arg(p.enumerator<DType>("a dtype"), Arg::dtype); }},
      {"layout", false, [](P& p, uint32_t) { return make_arg(p.enumerator<Layout>("a layout"), Arg::layout); }},
      {"memory_format", false,
       [](P& p, uint32_t) { return make_arg(p.enumerator<MemoryFormat>("a memory format"), Arg::memory_format); }},
      {"uid", false, [](P& p, uint32_t) { return make_arg(p.integer<uint64_t>(), Arg::uid_ref); }},
      {"device", false, [](P& p, uint32_t) { return p.named_arg(ArgKind::kDevice, p.string_literal()); }},
      {"group", false, [](P& p, uint32_t) { return p.named_arg(ArgKind::kGroup, p.string_literal()); }},
      {"mesh", false, [](P& p, uint32_t) { return p.named_arg(ArgKind::kMesh, p.string_literal()); }},
      {"rng_slot", false, [](P& p, uint32_t) { return p.named_arg(ArgKind::kRngSlot, p.string_literal()); }},
      {"unknown", false, [](P& p, uint32_t) { return p.named_arg(ArgKind::kUnknown, p.bytes_literal()); }},
      {"op", false, [](P& p, uint32_t) { return p.named_arg(ArgKind::kOp, p.name()); }},
      {"enum", true, [](P& p, uint32_t) { return p.enum_arg(); }},
      {"opaque", true, [](P& p, uint32_t) { return p.opaque_arg(); }},
      {"complex", true, [](P& p, uint32_t) { return p.complex_arg(); }},
      {"value", true, [](P& p, uint32_t inside) { return p.value_arg(inside); }},
      {"slice", true, [](P& p, uint32_t inside) { return p.slice_arg(inside); }},
      {"set", true, [](P& p, uint32_t inside) { return p.sequence(ArgKind::kSet, ')', inside); }},
      {"typed", false, [](P& p, uint32_t inside) { return p.typed_arg(inside); }},
  };
  const std::string_view word = lexer_.text();
  for (const Form& form : kForms) {
    if (form.word != word) continue;
    if (form.nests && !check_depth(depth)) return std::nullopt;
    lexer_.advance();
    if (!expect('(')) return std::nullopt;
    const std::optional<Arg> result = form.read(*this, depth);
    if (!result || !expect(')')) return std::nullopt;
    return result;
  }
  std::vector<std::string_view> words = {"None", "True", "False", "inf", "nan", "float", "base64"};
  for (const Form& form : kForms) words.push_back(form.word);
  fail_here(shown(word) + " is not an argument", suggest(word, words));
  return std::nullopt;
}

std::optional<uint64_t> TextParser::float_bits() {
  const Token token = lexer_.token();
  const std::string_view text = lexer_.text();
  if (lexer_.is_word("float")) {
    lexer_.advance();
    if (!expect('(')) return std::nullopt;
    const std::string_view hex = lexer_.text();
    uint64_t bits = 0;
    const bool is_hex = lexer_.token().kind == TokenKind::kHex;
    if (!is_hex || std::from_chars(hex.data() + 2, hex.data() + hex.size(), bits, 16).ec != std::errc()) {
      fail_here("expected the 64 bits of the number, such as 0x7ff8000000000001");
      return std::nullopt;
    }
    lexer_.advance();
    if (!expect(')')) return std::nullopt;
    return bits;
  }
  if (text == "nan") {
    lexer_.advance();
    return kPlainNan;
  }
  if (token.kind != TokenKind::kFloat && token.kind != TokenKind::kInteger && text != "inf") {
    unexpected("a number");
    return std::nullopt;
  }
  const std::optional<double> value = parse_double(text);
  if (!value) {
    fail(ErrorCode::kBadValue, token.offset, "the number is too large or too small for 64 bits");
    return std::nullopt;
  }
  lexer_.advance();
  return std::bit_cast<uint64_t>(*value);
}

// Reads the items before `close`. The caller reads `close` itself.
std::optional<Arg> TextParser::sequence(ArgKind kind, char close, uint32_t depth, bool* has_comma) {
  const size_t mark = stack_->mark();
  if (!items(
          close, [&] { return arg(depth + 1); }, has_comma))
    return std::nullopt;
  return Arg::children(kind, stack_->take(mark));
}

std::optional<Arg> TextParser::tuple(uint32_t depth) {
  const size_t begin = offset();
  lexer_.advance();
  bool has_comma = false;
  const std::optional<Arg> result = sequence(ArgKind::kTuple, ')', depth, &has_comma);
  if (!result || !expect(')')) return std::nullopt;
  if (result->range().count == 1 && !has_comma) {
    fail(ErrorCode::kSyntax, begin, "a tuple of one item needs a comma", "write (item,)");
    return std::nullopt;
  }
  return result;
}

std::optional<Arg> TextParser::dict(uint32_t depth) {
  lexer_.advance();
  const size_t mark = stack_->mark();
  const auto read = [&] { return arg(depth + 1) && expect(':') && arg(depth + 1); };
  if (!items('}', read) || !expect('}')) return std::nullopt;
  return Arg::children(ArgKind::kDict, stack_->take(mark));
}

std::optional<Arg> TextParser::typed_arg(uint32_t depth) {
  const std::optional<StringId> type = interned();
  if (!type || !expect(',')) return std::nullopt;
  const size_t at = offset();
  const std::optional<Arg> item = plain_arg(depth);
  if (!item) return std::nullopt;
  switch (item->kind()) {
    case ArgKind::kList:
    case ArgKind::kTuple:
    case ArgKind::kDict:
    case ArgKind::kSlice:
    case ArgKind::kSet:
      break;
    default:
      fail(ErrorCode::kSyntax, at, "only a list, a tuple, a dict, a slice or a set can have a Python type");
      return std::nullopt;
  }
  return Arg::children(item->kind(), item->range(), type->index() == 0 ? StringId() : *type);
}

std::optional<Arg> TextParser::slice_arg(uint32_t depth) {
  const size_t mark = stack_->mark();
  for (int i = 0; i < 3; ++i) {
    if (i > 0 && !expect(',')) return std::nullopt;
    if (!arg(depth + 1)) return std::nullopt;
  }
  return Arg::children(ArgKind::kSlice, stack_->take(mark));
}

std::optional<Arg> TextParser::enum_arg() {
  const std::optional<StringId> type = interned();
  if (!type || !expect(',')) return std::nullopt;
  const std::optional<StringId> value_name = interned();
  if (!value_name) return std::nullopt;
  Arg number = Arg::none();
  if (accept(',')) {
    const std::optional<int64_t> read = integer<int64_t>();
    if (!read) return std::nullopt;
    number = Arg::integer(*read);
  }
  const Arg parts[] = {Arg::string(*type), Arg::string(*value_name), number};
  return Arg::children(ArgKind::kEnum, pool_->append(parts));
}

std::optional<Arg> TextParser::opaque_arg() {
  const std::optional<StringId> type = interned();
  if (!type) return std::nullopt;
  std::optional<StringId> text = module_->intern("");
  std::optional<std::string> payload = std::string();
  if (accept(',')) {
    text = interned();
    if (!text) return std::nullopt;
    if (accept(',')) payload = bytes_literal();
    if (!payload) return std::nullopt;
  }
  const Arg parts[] = {Arg::string(*type), Arg::string(*text), Arg::named(ArgKind::kBytes, module_->intern(*payload))};
  return Arg::children(ArgKind::kOpaque, pool_->append(parts));
}

std::optional<Arg> TextParser::complex_arg() {
  const std::optional<uint64_t> real = float_bits();
  if (!real || !expect(',')) return std::nullopt;
  const std::optional<uint64_t> imaginary = float_bits();
  if (!imaginary) return std::nullopt;
  const Arg parts[] = {Arg::floating_bits(*real), Arg::floating_bits(*imaginary)};
  return Arg::children(ArgKind::kComplex, pool_->append(parts));
}

std::optional<Arg> TextParser::named_arg(ArgKind kind, const std::optional<std::string_view>& text) {
  if (!text) return std::nullopt;
  return Arg::named(kind, module_->intern(*text));
}

std::optional<Arg> TextParser::value_arg(uint32_t depth) {
  const bool may_name_nodes = std::exchange(may_name_nodes_, false);
  std::optional<ParsedValue> item = parsed_value(depth + 1);
  if (!item) return std::nullopt;
  may_name_nodes_ = may_name_nodes;
  const ValueId id = pool_->append_value(item->value);
  if (!item->unknown.empty()) pool_->set_value_unknown(id, std::move(item->unknown));
  return Arg::value(id);
}

bool TextParser::meta(ArgRange& entries) {
  const size_t mark = stack_->mark();
  const auto read_entry = [this] {
    const std::optional<StringId> key = interned();
    return key && expect(':') && entry(*key);
  };
  if (!expect('{') || !items('}', read_entry) || !expect('}')) return false;
  entries = stack_->take(mark);
  return true;
}

bool TextParser::entry(StringId key) {
  std::optional<std::string> unknown = suffix();
  if (!unknown) return false;
  stack_->push(Arg::string(key), std::move(*unknown));
  return arg(1);
}

}  // namespace fxopt
