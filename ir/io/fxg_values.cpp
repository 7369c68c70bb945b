// Parses values: the types after the colon of a node, and the expressions in these types.

#include <algorithm>
#include <iterator>
#include <utility>

#include "ir/io/fxg_parse.h"

namespace fxopt {
namespace {

constexpr std::string_view kTypeWords[] = {"None", "_",     "sym_int", "sym_float", "sym_bool",
                                           "sym",  "const", "opaque",  "graph",     "unknown"};

struct PlacementFields {
  PlacementKind kind = PlacementKind::kReplicate;
  std::optional<int64_t> dim, split_factor;
  StringId reduce_op;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("kind", self.kind);
    field("dim", self.dim);
    field("split_factor", self.split_factor);
    field("reduce_op", self.reduce_op);
  }
};

struct OpaqueFields {
  StringId mesh, group, text;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("mesh", self.mesh);
    field("group", self.group);
    field("text", self.text);
  }
};

}  // namespace

std::optional<ValueId> TextParser::value() {
  std::optional<ParsedValue> item = parsed_value(1);
  if (!item) return std::nullopt;
  if (item->value.kind == ValueKind::kAbsent) return ValueId();
  const ValueId id = pool_->append_value(item->value);
  if (!item->unknown.empty()) pool_->set_value_unknown(id, std::move(item->unknown));
  return id;
}

std::optional<ValueId> TextParser::tensor_field() {
  const size_t at = offset();
  const std::optional<ValueId> id = value();
  if (!id) return std::nullopt;
  if (id->is_valid() && pool_->value(*id).kind == ValueKind::kTensor) return id;
  fail(ErrorCode::kBadValue, at, "only a tensor is allowed here");
  return std::nullopt;
}

// An absent value has no fields. If unknown fields follow, the value is an alternative of a newer
// schema.
std::optional<TextParser::ParsedValue> TextParser::parsed_value(uint32_t depth) {
  ParsedValue result;
  const std::optional<Value> item = plain_value(depth, result.unknown);
  if (!item) return std::nullopt;
  result.value = *item;
  const std::optional<std::string> unknown = suffix();
  if (!unknown) return std::nullopt;
  result.unknown += *unknown;
  if (result.value.kind == ValueKind::kAbsent && !unknown->empty()) result.value.kind = ValueKind::kUnknown;
  return result;
}

std::optional<Value> TextParser::plain_value(uint32_t depth, std::string& unknown) {
  if ((lexer_.is('[') || lexer_.is('(') || lexer_.is('{')) && !check_depth(depth)) return std::nullopt;
  if (lexer_.is('(')) return value_sequence(ValueKind::kTuple, ')', depth);
  if (lexer_.is('[')) return value_sequence(ValueKind::kList, ']', depth);
  if (lexer_.is('{')) return value_dict(depth);
  if (lexer_.is('?')) return tensor();
  if (!at_word("a type")) return std::nullopt;
  return lexer_.next_byte() == '[' ? tensor() : word_value(depth, unknown);
}

std::optional<Value> TextParser::word_value(uint32_t depth, std::string& unknown) {
  const std::string_view word = lexer_.text();
  if (std::find(std::begin(kTypeWords), std::end(kTypeWords), word) == std::end(kTypeWords)) {
    unknown_type(word);
    return std::nullopt;
  }
  lexer_.advance();
  Value result;
  if (word == "_") return result;
  result.kind = ValueKind::kNone;
  if (word == "None") return result;
  if (!expect('(')) return std::nullopt;
  if (word == "opaque") return opaque_value();
  if (word == "const") {
    if (!check_depth(depth)) return std::nullopt;
    const size_t mark = stack_->mark();
    if (!arg(depth + 1)) return std::nullopt;
    result.kind = ValueKind::kScalar;
    result.first = stack_->take(mark).first;
  } else if (word == "graph") {
    if (!expect('@')) return std::nullopt;
    const std::optional<std::string_view> graph_name = name();
    if (!graph_name) return std::nullopt;
    result.kind = ValueKind::kGraph;
    result.name = module_->intern(*graph_name);
  } else if (word == "unknown") {
    std::optional<std::string> bytes = bytes_literal();
    if (!bytes) return std::nullopt;
    result.kind = ValueKind::kUnknown;
    unknown = std::move(*bytes);
  } else if (!symbolic_value(word == "sym" ? std::nullopt : parse_enum<SymbolType>(word.substr(4)), result)) {
    return std::nullopt;
  }
  if (!expect(')')) return std::nullopt;
  return result;
}

bool TextParser::unknown_type(std::string_view word) {
  if (parse_enum<DType>(word)) {
    return fail_here("the sizes of this tensor are missing",
                     "write " + std::string(word) + "[2, 4], or " + std::string(word) + "[] without dimensions");
  }
  std::vector<std::string_view> known(std::begin(kTypeWords), std::end(kTypeWords));
  for (const EnumName<DType>& entry : EnumNames<DType>::kAll) known.push_back(entry.name);
  return fail_here(shown(word) + " is not a type", suggest(word, known));
}

void TextParser::add_children(Value& parent, std::vector<ParsedValue>& children) {
  std::vector<Value> values;
  values.reserve(children.size());
  for (const ParsedValue& child : children) values.push_back(child.value);
  parent.first = pool_->append_values(values).index();
  parent.count = static_cast<uint32_t>(values.size());
  for (size_t i = 0; i < children.size(); ++i) {
    if (!children[i].unknown.empty()) {
      pool_->set_value_unknown(ValueId(parent.first + i), std::move(children[i].unknown));
    }
  }
}

bool TextParser::child_value(uint32_t depth, std::vector<ParsedValue>& children) {
  std::optional<ParsedValue> child = parsed_value(depth);
  if (child) children.push_back(std::move(*child));
  return child.has_value();
}

std::optional<Value> TextParser::value_sequence(ValueKind kind, char close, uint32_t depth) {
  const size_t begin = offset();
  lexer_.advance();
  std::vector<ParsedValue> children;
  bool has_comma = false;
  const auto read = [&] { return child_value(depth + 1, children); };
  if (!items(close, read, &has_comma) || !expect(close)) return std::nullopt;
  if (kind == ValueKind::kTuple && children.size() == 1 && !has_comma) {
    fail(ErrorCode::kSyntax, begin, "a tuple of one item needs a comma", "write (item,)");
    return std::nullopt;
  }
  Value result;
  result.kind = kind;
  add_children(result, children);
  return result;
}

std::optional<Value> TextParser::value_dict(uint32_t depth) {
  lexer_.advance();
  std::vector<ParsedValue> children;
  std::vector<StringId> keys;
  const auto read = [&] {
    const std::optional<StringId> key = interned();
    if (key) keys.push_back(*key);
    return key && expect(':') && child_value(depth + 1, children);
  };
  if (!items('}', read) || !expect('}')) return std::nullopt;
  Value result;
  result.kind = ValueKind::kDict;
  add_children(result, children);
  result.keys = pool_->append_keys(keys);
  return result;
}

bool TextParser::symbolic_value(std::optional<SymbolType> type, Value& result) {
  if (!type) {
    type = enumerator<SymbolType>("a type of symbol");
    if (!type || !expect(',')) return false;
  }
  const std::optional<ExprId> id = expression(offset());
  if (!id) return false;
  result.kind = ValueKind::kSymbolic;
  result.symbol_type = *type;
  result.first = id->index();
  return true;
}

// The opening parenthesis has been read. Reads the rest, including the closing parenthesis.
std::optional<Value> TextParser::opaque_value() {
  const std::optional<StringId> type = interned();
  if (!type) return std::nullopt;
  if (!accept(',') && !lexer_.is(')')) {
    unexpected("\",\" or \")\"");
    return std::nullopt;
  }
  OpaqueFields item;
  if (!fields(item, ')')) return std::nullopt;
  Value result;
  result.kind = ValueKind::kOpaque;
  result.name = *type;
  result.mesh = item.mesh;
  result.group = item.group;
  result.text = item.text;
  return result;
}

std::optional<Value> TextParser::tensor() {
  Tensor item;
  const std::optional<DType> dtype = enumerator<DType>("a dtype");
  if (!dtype || !expect('[')) return std::nullopt;
  item.dtype = *dtype;
  const std::optional<DimsId> sizes = dims(']');
  if (!sizes) return std::nullopt;
  item.sizes = *sizes;
  if (lexer_.is('(') && !tensor_strides(item)) return std::nullopt;
  if (!tensor_place(item)) return std::nullopt;
  if (lexer_.is('{') && !tensor_flags(item)) return std::nullopt;
  if (item.layout == Layout::kStrided && !item.strides.is_valid()) {
    item.strides = module_->contiguous_strides(item.sizes);
  }
  return pool_->tensor_value(item);
}

// [ "+" offset ] [ "@" device ] [ "$" storage ]
bool TextParser::tensor_place(Tensor& item) {
  if (accept('+')) {
    if (lexer_.is('(')) {
      const std::optional<ExprId> id = parenthesized();
      if (!id) return false;
      item.offset = Dim{0, *id};
    } else {
      const std::optional<int64_t> number = integer<int64_t>();
      if (!number) return false;
      item.offset.value = *number;
    }
  }
  if (lexer_.is('@')) {
    const size_t at = offset();
    const std::string_view bare = lexer_.take_device();
    if (!bare.empty()) {
      item.device = module_->intern(bare);
    } else if (lexer_.token().kind == TokenKind::kString) {
      if (!field(item.device)) return false;
    } else {
      return fail(ErrorCode::kSyntax, at, "no device follows the @", "write @cuda:0 or @\"any text\"");
    }
  }
  return !lexer_.is('$') || tensor_storage(item);
}

bool TextParser::tensor_strides(Tensor& item) {
  const size_t at = offset();
  lexer_.advance();
  const std::optional<DimsId> strides = dims(')');
  if (!strides) return false;
  const size_t rank = module_->dims(item.sizes).size();
  if (dims_.size() != rank) {
    return fail(ErrorCode::kBadValue, at,
                std::to_string(dims_.size()) + " strides for " + std::to_string(rank) + " sizes");
  }
  if (rank > 0) item.strides = *strides;
  return true;
}

// A storage without a record gets a record without known fields.
bool TextParser::tensor_storage(Tensor& item) {
  lexer_.advance();
  const size_t at = offset();
  const std::optional<uint64_t> id = integer<uint64_t>();
  if (!id) return false;
  if (*id == UINT64_MAX) return fail(ErrorCode::kLimit, at, "this id is too large: the largest id is 2^64 - 2");
  item.storage = module_->find_storage(*id);
  if (!item.storage.is_valid()) {
    StorageRecord added;
    added.id = *id;
    item.storage = module_->add_storage(std::move(added));
  }
  return true;
}

bool TextParser::tensor_flags(Tensor& item) {
  lexer_.advance();
  const auto read = [&] { return at_word("a flag of a tensor or \"}\"") && tensor_flag(item); };
  return items('}', read) && expect('}');
}

bool TextParser::tensor_flag(Tensor& item) {
  struct Flag {
    std::string_view word;
    bool Tensor::*member;
  };
  static constexpr Flag kFlags[] = {{"requires_grad", &Tensor::requires_grad},
                                    {"conjugate", &Tensor::conjugate},
                                    {"negative", &Tensor::negative},
                                    {"pinned", &Tensor::pinned}};
  const Token token = lexer_.token();
  const std::string_view word = lexer_.text();
  lexer_.advance();
  for (const Flag& flag : kFlags) {
    if (flag.word != word) continue;
    item.*(flag.member) = true;
    return true;
  }
  if (word == "layout") return expect('=') && field(item.layout);
  if (word == "mesh") return expect('=') && field(item.mesh);
  if (word == "subclass") return expect('=') && field(item.subclass);
  if (word == "placements") {
    std::vector<Placement> list;
    if (!expect('=') || !field(list)) return false;
    item.placements = module_->placements(std::move(list));
    return true;
  }
  std::vector<std::string_view> words = {"layout", "mesh", "placements", "subclass"};
  for (const Flag& flag : kFlags) words.push_back(flag.word);
  lexer_.rewind(token);
  return fail_here(shown(word) + " is not a flag of a tensor", suggest(word, words));
}

bool TextParser::placement(Placement& result) {
  PlacementFields item;
  if (!record(item)) return false;
  result.kind = item.kind;
  result.has_dim = item.dim.has_value();
  result.dim = item.dim.value_or(0);
  result.has_split_factor = item.split_factor.has_value();
  result.split_factor = item.split_factor.value_or(0);
  result.reduce_op = item.reduce_op;
  return true;
}

std::optional<DimsId> TextParser::dims(char close) {
  dims_.clear();
  const auto read = [&] {
    const std::optional<Dim> item = dim(close);
    if (item) dims_.push_back(*item);
    return item.has_value();
  };
  if (!items(close, read) || !expect(close)) return std::nullopt;
  return module_->dims(dims_);
}

std::optional<Dim> TextParser::dim(char close) {
  const Token first = lexer_.token();
  if (first.kind == TokenKind::kInteger) {
    lexer_.advance();
    const bool stands_alone = lexer_.is(',') || lexer_.is(close);
    lexer_.rewind(first);
    if (stands_alone) {
      const std::optional<int64_t> number = integer<int64_t>();
      if (!number) return std::nullopt;
      return Dim{*number, ExprId()};
    }
  }
  const std::optional<ExprId> id = expression(first.offset);
  if (!id) return std::nullopt;
  return Dim{0, *id};
}

std::optional<ExprId> TextParser::expression(size_t begin) {
  const std::string_view text = lexer_.take_expression(begin);
  if (text.empty()) {
    fail(ErrorCode::kBadExpression, begin, "an expression is missing here");
    return std::nullopt;
  }
  const std::unordered_map<std::string_view, ExprId>::const_iterator known = expressions_.find(text);
  if (known != expressions_.end()) return known->second;
  const Result<ExprId> parsed = module_->exprs.parse(text);
  if (!parsed.ok()) {
    const Error& error = parsed.error();
    const size_t column = error.where.column > 0 ? error.where.column - 1 : 0;
    const size_t at = static_cast<size_t>(text.data() - source_.data()) + column;
    fail(error.code, at, error.message, error.hint);
    return std::nullopt;
  }
  expressions_.emplace(text, *parsed);
  return *parsed;
}

std::optional<ExprId> TextParser::parenthesized() {
  if (!expect('(')) return std::nullopt;
  const std::optional<ExprId> id = expression(offset());
  if (!id || !expect(')')) return std::nullopt;
  return id;
}

}  // namespace fxopt
