#pragma once

#include <charconv>
#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "core/bytes.h"
#include "ir/graph/module.h"
#include "ir/io/fxg_lex.h"
#include "ir/io/io.h"

// The parser that parse_text() uses. The grammar is in README.md beside this file.

namespace fxopt {

// A recursive descent parser for one text. A function that returns false or nullopt has recorded an
// error. The parser does not recover from errors, so the result is the first error.
// ReadLimits::max_depth limits the nesting. The time is linear in the length of the text.
class TextParser {
 public:
  TextParser(std::string_view source, const std::string& file, const ReadLimits& limits);

  Result<std::unique_ptr<Module>> run();

 private:
  struct ParsedValue {
    Value value;
    std::string unknown;
  };
  struct Callee {
    NodeKind kind = NodeKind::kUnspecified;
    TargetId target;
  };
  struct NodeArgs {
    ArgRange args, kwargs;
  };
  // A node to which the text refers before the node's definition.
  struct LaterNode {
    NodeId id;
    std::optional<size_t> first_use;  // offset in the text
  };
  struct NodeFields;  // the fields in the braces after a node

  // -- in fxg_parse.cpp: functions that read the module and its graphs

  // Reads the words "fxg 0" at the beginning of the text, if they are present. Any other version is
  // an error.
  bool file_header();
  bool module_item();
  bool module_fields();
  bool storage();
  bool counters();
  bool carried(std::optional<std::string>& message);
  bool finish_module();
  bool graph();
  bool graph_item();
  bool finish_graph();
  template <class Record>
  bool single(std::optional<Record>& slot);
  template <class Record>
  bool append(std::vector<Record>& list);

  // -- in fxg_nodes.cpp: functions that read nodes and references to nodes

  bool node();
  bool return_node();
  bool add_node(StringId name, size_t offset, const Callee& callee);
  std::optional<Callee> callee(StringId name);
  std::optional<std::string_view> bracketed_target();
  bool call_arguments(NodeArgs& result);
  bool node_fields(NodeId id);
  bool apply(NodeFields& fields, NodeId id, size_t offset);
  std::optional<NodeId> node_reference();
  void scan_node_names();
  bool undefined_node(std::string_view name, size_t offset);

  // -- in fxg_args.cpp: functions that read arguments

  bool arg(uint32_t depth);  // pushes one argument onto `stack_`
  std::optional<Arg> plain_arg(uint32_t depth);
  std::optional<Arg> word_arg(uint32_t depth);
  // Arguments and fields accept Python's spelling and JSON's spelling of a boolean.
  bool is_bool_word() const {
    return lexer_.is_word("true") || lexer_.is_word("false") || lexer_.is_word("True") || lexer_.is_word("False");
  }
  bool bool_word() {
    const bool value = lexer_.is_word("true") || lexer_.is_word("True");
    lexer_.advance();
    return value;
  }
  std::optional<Arg> call_arg(uint32_t depth);
  std::optional<Arg> number_arg();
  std::optional<Arg> sequence(ArgKind kind, char close, uint32_t depth, bool* has_comma = nullptr);
  std::optional<Arg> tuple(uint32_t depth);
  std::optional<Arg> dict(uint32_t depth);
  std::optional<Arg> typed_arg(uint32_t depth);
  std::optional<Arg> slice_arg(uint32_t depth);
  std::optional<Arg> enum_arg();
  std::optional<Arg> opaque_arg();
  std::optional<Arg> complex_arg();
  std::optional<Arg> named_arg(ArgKind kind, const std::optional<std::string_view>& text);
  std::optional<Arg> value_arg(uint32_t depth);
  std::optional<uint64_t> float_bits();
  bool meta(ArgRange& entries);
  // Reads the value of a keyword argument or of a metadata entry. The caller has already read the
  // key and the separator:
  //   keyword argument:   key = ~base64"..." value
  //   metadata entry:     "key": ~base64"..." value
  // The part ~base64"..." is optional. It holds fields of a newer schema, and is stored with the
  // key. Pushes the key and the value onto `stack_`.
  bool entry(StringId key);

  // -- in fxg_values.cpp: functions that read values and expressions

  std::optional<ValueId> value();  // returns an invalid id for the absent value
  std::optional<ValueId> tensor_field();
  std::optional<ParsedValue> parsed_value(uint32_t depth);
  std::optional<Value> plain_value(uint32_t depth, std::string& unknown);
  std::optional<Value> word_value(uint32_t depth, std::string& unknown);
  bool child_value(uint32_t depth, std::vector<ParsedValue>& children);
  std::optional<Value> value_sequence(ValueKind kind, char close, uint32_t depth);
  std::optional<Value> value_dict(uint32_t depth);
  bool symbolic_value(std::optional<SymbolType> type, Value& result);
  bool unknown_type(std::string_view word);
  std::optional<Value> opaque_value();
  std::optional<Value> tensor();
  bool tensor_strides(Tensor& tensor);
  bool tensor_place(Tensor& tensor);
  bool tensor_storage(Tensor& tensor);
  bool tensor_flags(Tensor& tensor);
  bool tensor_flag(Tensor& tensor);
  std::optional<DimsId> dims(char close);
  std::optional<Dim> dim(char close);
  void add_children(Value& parent, std::vector<ParsedValue>& children);

  std::optional<ExprId> expression(size_t offset);
  std::optional<ExprId> parenthesized();

  // -- in fxg_parse.cpp: functions that read words, strings and numbers

  // Reads the token if it is `punct`. Otherwise records an error and returns false.
  bool expect(char punct);
  // Reads the token if it is `punct`. Otherwise returns false, without an error.
  bool accept(char punct) {
    if (!lexer_.is(punct)) return false;
    lexer_.advance();
    return true;
  }
  // Reads items that are separated by commas, up to `close`, which the caller reads. `item` reads
  // one item. A comma may follow the last item. Sets `has_comma` to true if it reads any comma.
  template <class Item>
  bool items(char close, const Item& item, bool* has_comma = nullptr) {
    while (!lexer_.is(close)) {
      if (!item()) return false;
      if (!accept(',')) break;
      if (has_comma != nullptr) *has_comma = true;
    }
    return true;
  }
  // Returns true if the current token is an identifier. Otherwise records an error and returns
  // false.
  bool at_word(std::string_view what);
  std::optional<std::string_view> string_literal();  // valid until the next string is read
  std::optional<std::string> bytes_literal();
  std::optional<std::string> suffix();  // reads unknown fields; empty if absent
  // Reads an identifier or a string. The result is valid until the next string is read.
  std::optional<std::string_view> name();
  std::optional<StringId> interned();
  template <std::integral T>
  std::optional<T> integer();
  template <class E>
  std::optional<E> enumerator(std::string_view what);
  bool check_depth(uint32_t depth);
  bool check_length(size_t bytes);  // checks the length of the current token's text

  // -- functions that read fields of records, see ir/graph/records.h

  template <class Record>
  bool fields(Record& record, char close);
  template <class Record>
  bool record(Record& record) {
    return expect('{') && fields(record, '}');
  }
  template <class T>
  bool field(T& value);
  template <class T>
  bool list_field(std::vector<T>& list);
  bool control_dep(ControlDep& dep);
  bool placement(Placement& placement);
  template <class Record>
  bool unknown_field(const Record& item, std::string_view field_name, size_t offset);

  bool fail(ErrorCode code, size_t offset, std::string message, std::string hint = std::string());
  bool fail_here(std::string message, std::string hint = std::string());
  bool unexpected(std::string_view wanted);
  size_t offset() const { return lexer_.token().offset; }
  void use_pool(Pool& pool);

  std::string_view source_;
  std::string file_;
  ReadLimits limits_;
  Lexer lexer_;
  std::unique_ptr<Module> module_;
  std::optional<Error> error_;
  std::string unescaped_;  // the last string that had escapes
  Pool* pool_ = nullptr;
  std::optional<ArgStack> stack_;
  // The expressions parsed so far. The table is looked up and never iterated.
  std::unordered_map<std::string_view, ExprId> expressions_;
  std::vector<Dim> dims_;  // the current list

  Graph* graph_ = nullptr;
  Lexer graph_begin_;
  std::vector<NodeArgs> node_args_;  // arguments of the graph's nodes; set after all nodes are read
  std::unordered_map<std::string, LaterNode> later_nodes_;
  bool scanned_ = false;
  std::string node_name_;

  bool may_name_nodes_ = false;  // true in the arguments of a node, false in metadata and values

  uint64_t nodes_read_ = 0;
  uint64_t expected_uid_ = 0;
  uint64_t next_uid_ = 0;
  std::optional<uint64_t> given_next_uid_, given_next_storage_;
  bool has_module_fields_ = false;
  bool has_counters_ = false;
  size_t counters_at_ = 0;
  bool has_meta_ = false;
};

// Returns "did you mean 'x'?" for the candidate closest to `word`. Returns an empty string if no
// candidate is close enough, or if `word` is long.
std::string suggest(std::string_view word, const std::vector<std::string_view>& candidates);
// Returns `text` in quotes for a message. A long text is shortened.
std::string shown(std::string_view text);

template <std::integral T>
std::optional<T> TextParser::integer() {
  if (lexer_.token().kind != TokenKind::kInteger) {
    unexpected("an integer");
    return std::nullopt;
  }
  const std::string_view digits = lexer_.text();
  T value = 0;
  const std::from_chars_result read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) {
    fail(ErrorCode::kBadValue, offset(),
         "the number does not fit in " + std::to_string(8 * sizeof(T)) +
             (std::is_signed_v<T> ? " bits with a sign" : " bits without a sign"));
    return std::nullopt;
  }
  lexer_.advance();
  return value;
}

template <class E>
std::optional<E> TextParser::enumerator(std::string_view what) {
  if (accept('?')) {
    const std::optional<std::underlying_type_t<E>> number = integer<std::underlying_type_t<E>>();
    if (!number) return std::nullopt;
    return static_cast<E>(*number);
  }
  if (!at_word(what)) return std::nullopt;
  const std::optional<E> value = parse_enum<E>(lexer_.text());
  if (value) {
    lexer_.advance();
    return value;
  }
  std::vector<std::string_view> names;
  for (const EnumName<E>& entry : EnumNames<E>::kAll) names.push_back(entry.name);
  fail_here(shown(lexer_.text()) + " is not " + std::string(what), suggest(lexer_.text(), names));
  return std::nullopt;
}

template <class T>
bool TextParser::list_field(std::vector<T>& list) {
  const auto read = [&] {
    T& item = list.emplace_back();
    if constexpr (std::is_same_v<T, StringId>) {
      const std::optional<StringId> text = interned();
      if (text) item = *text;
      return text.has_value();
    } else {
      return field(item);
    }
  };
  return expect('[') && items(']', read) && expect(']');
}

template <class>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;

template <class T>
bool TextParser::field(T& value) {
  const auto assign = [&value](auto&& read) {
    if (!read) return false;
    value = std::move(*read);
    return true;
  };
  if constexpr (std::is_same_v<T, std::optional<StringId>>) {
    return (value = interned()).has_value();
  } else if constexpr (kIsOptional<T>) {
    return field(value.emplace());
  } else if constexpr (kIsVector<T>) {
    return list_field(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!is_bool_word()) return unexpected("true or false");
    value = bool_word();
    return true;
  } else if constexpr (std::is_integral_v<T>) {
    return assign(integer<T>());
  } else if constexpr (std::is_enum_v<T>) {
    return assign(enumerator<T>("a value of this field"));
  } else if constexpr (std::is_same_v<T, StringId>) {
    if (!assign(interned())) return false;
    if (value.index() == 0) value = StringId();
    return true;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return assign(bytes_literal());
  } else if constexpr (std::is_same_v<T, ExprField>) {
    const std::optional<ExprId> id = parenthesized();
    if (id) value.id = *id;
    return id.has_value();
  } else if constexpr (std::is_same_v<T, Integer>) {
    if (!lexer_.is('(')) return (value.value = integer<int64_t>()).has_value();
    const std::optional<ExprId> id = parenthesized();
    if (id) value.expr = *id;
    return id.has_value();
  } else if constexpr (std::is_same_v<T, ValueId>) {
    return assign(tensor_field());
  } else if constexpr (std::is_same_v<T, MetaRange>) {
    return meta(value.range);
  } else if constexpr (std::is_same_v<T, ArgRange>) {
    return meta(value);
  } else if constexpr (std::is_same_v<T, ControlDep>) {
    return control_dep(value);
  } else if constexpr (std::is_same_v<T, Placement>) {
    return placement(value);
  } else {
    return record(value);
  }
}

template <class Record>
bool TextParser::fields(Record& item, char close) {
  uint64_t seen = 0;
  bool has_unknown = false;
  const auto read = [&] {
    if (!at_word("a field name or " + quote(std::string_view(&close, 1)))) return false;
    const std::string_view field_name = lexer_.text();
    const size_t name_offset = offset();
    lexer_.advance();
    if (!expect('=')) return false;
    bool found = false;
    bool repeated = false;
    bool ok = true;
    unsigned index = 0;
    Record::visit(item, [&]<class T>(std::string_view candidate, T& member) {
      const uint64_t bit = uint64_t{1} << index++;
      if (found || candidate != field_name) return;
      found = true;
      repeated = (seen & bit) != 0;
      seen |= bit;
      if (repeated) return;
      ok = field(member);
      if constexpr (std::is_same_v<Record, Symbol> && std::is_same_v<T, StringId>) {
        // Protobuf records whether the field `node` is present. The text node="" therefore means
        // that the field is present and contains the empty string, which has the StringId 0.
        if (candidate == "node" && !member.is_valid()) member = StringId(0);
      }
    });
    if constexpr (requires { item.unknown; }) {
      if (!found && field_name == "unknown") {
        found = true;
        repeated = has_unknown;
        has_unknown = true;
        ok = repeated || field(item.unknown);
      }
    }
    if (!found) return unknown_field(item, field_name, name_offset);
    if (repeated) {
      return fail(ErrorCode::kDuplicateName, name_offset, "field " + shown(field_name) + " is given twice");
    }
    return ok;
  };
  return items(close, read) && expect(close);
}

template <class Record>
bool TextParser::unknown_field(const Record& item, std::string_view field_name, size_t at) {
  std::vector<std::string_view> names;
  Record::visit(item, [&names](std::string_view candidate, const auto&) { names.push_back(candidate); });
  return fail(ErrorCode::kSyntax, at, "there is no field " + shown(field_name) + " here", suggest(field_name, names));
}

}  // namespace fxopt
