#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/bytes.h"
#include "ir/graph/module.h"
#include "ir/io/fxg_lex.h"
#include "ir/io/io.h"

// The printer that print_text() uses. The grammar is in README.md beside this file.

namespace fxopt {

template <class T>
struct IsOptionalField : std::false_type {};
template <class T>
struct IsOptionalField<std::optional<T>> : std::true_type {};
template <class T>
struct IsVectorField : std::false_type {};
template <class T>
struct IsVectorField<std::vector<T>> : std::true_type {};

// Returns true if `value` is the default value of its type. Fields with default values are not
// printed.
template <class T>
bool is_default(const T& value) {
  if constexpr (IsOptionalField<T>::value) {
    return !value.has_value();
  } else if constexpr (IsVectorField<T>::value || std::is_same_v<T, std::string>) {
    return value.empty();
  } else if constexpr (std::is_same_v<T, StringId>) {
    return !value.is_valid() || value.index() == 0;
  } else if constexpr (std::is_same_v<T, ExprField>) {
    return !value.id.is_valid();
  } else if constexpr (std::is_same_v<T, Integer>) {
    return !value.is_known();
  } else if constexpr (std::is_same_v<T, ValueId>) {
    return !value.is_valid();
  } else if constexpr (std::is_same_v<T, MetaRange>) {
    return value.range.count == 0;
  } else if constexpr (std::is_same_v<T, ArgRange>) {
    return value.count == 0;
  } else {
    return value == T{};
  }
}

// Writes the commas between the items of one bracketed list.
class Commas {
 public:
  explicit Commas(std::string& out) : out_(&out) {}
  void next() {
    if (!first_) *out_ += ", ";
    first_ = false;
  }

 private:
  std::string* out_;
  bool first_ = true;
};

// Appends the text of a module to one string. The printer needs no limits, because the readers
// limit the depth and length of the content.
class TextPrinter {
 public:
  TextPrinter(const Module& module, const TextOptions& options)
      : module_(module), options_(options), pool_(&module.pool) {}

  void module();
  void graph(const Graph& graph, uint64_t& next_uid);
  void node(const Graph& graph, NodeId id, uint64_t expected_uid);
  void call(const Graph& graph, NodeId id);
  void named_records();
  void version() {
    if (options_.version) out_ += "fxg 0\n";
  }
  template <class Record>
  void record(const Record& item);
  std::string take() { return std::move(out_); }

 private:
  template <class T>
  void number(T value) {
    std::array<char, 24> digits{};
    const std::to_chars_result end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
    out_.append(digits.data(), end.ptr);
  }
  void hex(uint64_t value) {
    std::array<char, 16> digits{};
    const std::to_chars_result end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16);
    out_.append("0x").append(digits.data(), end.ptr);
  }
  void text(StringId id) { quoted(module_.text(id)); }
  // Appends the result of quote(). Most strings need no escape and are copied.
  void quoted(std::string_view text) {
    const auto is_plain = [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; };
    if (std::all_of(text.begin(), text.end(), is_plain)) {
      ((out_ += '"') += text) += '"';
    } else {
      out_ += quote(text);
    }
  }
  void bytes(std::string_view raw) { ((out_ += "base64\"") += to_base64(raw)) += '"'; }
  void name(std::string_view name) {
    if (is_identifier(name)) {
      out_ += name;
    } else {
      quoted(name);
    }
  }
  void expr(ExprId id) {
    if (id.is_valid()) out_ += module_.exprs.to_string(id);
  }
  void dim(const Dim& dim);
  void floating(uint64_t bits);
  template <class E>
  void enumerator(E value) {
    const std::string_view known = name_of(value);
    if (!known.empty()) {
      out_ += known;
    } else {
      out_ += '?';
      number(static_cast<uint32_t>(value));
    }
  }

  template <class T>
  void field(const T& value);
  void placement(const Placement& placement);
  void meta(ArgRange entries);
  void entry_unknown(ArgIndex key);
  template <class T>
  void member(Commas& commas, std::string_view name, const T& value) {
    commas.next();
    (out_ += name) += '=';
    field(value);
  }
  template <class T>
  void member_unless_default(Commas& commas, std::string_view name, const T& value) {
    if (!is_default(value)) member(commas, name, value);
  }
  void unknown_member(Commas& commas, const std::string& raw) {
    if (raw.empty()) return;
    commas.next();
    out_ += "unknown=";
    bytes(raw);
  }

  void arg(ArgIndex index);
  void arg_without_suffix(const Arg& arg);
  void text_arg(const Arg& arg);
  void collection(const Arg& arg);
  void dict(ArgRange range);
  // Appends `word`, followed by the text of `content` in brackets.
  template <class Content>
  void word_with(std::string_view word, const Content& content) {
    (out_ += word) += '(';
    content();
    out_ += ')';
  }
  void word_with_text(std::string_view word, StringId text_id) {
    word_with(word, [&] { text(text_id); });
  }
  template <class E>
  void word_with_enum(std::string_view word, E value) {
    word_with(word, [&] { enumerator(value); });
  }
  void word_with_expr(std::string_view word, ExprId id) {
    word_with(word, [&] { expr(id); });
  }
  // Appends the texts of item(0), ..., item(count - 1) between `open` and `close`, separated by
  // commas.
  template <class Item>
  void listed(uint32_t count, std::string_view open, std::string_view close, const Item& item) {
    out_ += open;
    for (uint32_t i = 0; i < count; ++i) {
      if (i > 0) out_ += ", ";
      item(i);
    }
    out_ += close;
  }
  void node_name(NodeId id);
  void enum_arg(const Arg& arg);
  void opaque_arg(const Arg& arg);
  void items(ArgRange range, std::string_view open, std::string_view close);
  void value(ValueId id);
  void value_without_suffix(ValueId id);
  void symbolic(const Value& value);
  void values(const Value& value, std::string_view open, std::string_view close);
  void value_dict(const Value& value);
  void opaque_value(const Value& value);
  void tensor(const Tensor& tensor);
  void tensor_flags(const Tensor& tensor);
  void dims(DimsId id, std::string_view open, std::string_view close);

  template <class Record>
  void lines(std::string_view keyword, const std::vector<Record>& records) {
    for (const Record& item : records) line(keyword, item);
  }
  template <class Record>
  void line(std::string_view keyword, const Record& item) {
    (out_ += keyword) += ' ';
    record(item);
    out_ += '\n';
  }
  void module_line();
  void carried(std::string_view keyword, const std::optional<std::string>& message);
  void counters();

  std::string_view target_of(const Node& node) const;
  bool is_return(const Node& node) const;
  void callee(const Node& node);
  void arguments(const Node& node);
  void attributes(const Graph& graph, NodeId id, uint64_t expected_uid);
  void common_attributes(Commas& commas, const Node& node);
  void rare_attributes(Commas& commas, const NodeExtra& extra);
  void control(const std::vector<ControlDep>& deps);

  const Module& module_;
  TextOptions options_;
  const Pool* pool_;
  const Graph* graph_ = nullptr;
  std::string out_;
};

template <class T>
void TextPrinter::field(const T& value) {
  if constexpr (IsOptionalField<T>::value) {
    field(*value);
  } else if constexpr (IsVectorField<T>::value) {
    listed(static_cast<uint32_t>(value.size()), "[", "]", [&](uint32_t i) { field(value[i]); });
  } else if constexpr (std::is_same_v<T, bool>) {
    out_ += value ? "true" : "false";
  } else if constexpr (std::is_integral_v<T>) {
    number(value);
  } else if constexpr (std::is_enum_v<T>) {
    enumerator(value);
  } else if constexpr (std::is_same_v<T, StringId>) {
    text(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    bytes(value);
  } else if constexpr (std::is_same_v<T, ExprField>) {
    word_with_expr("", value.id);
  } else if constexpr (std::is_same_v<T, Integer>) {
    if (value.expr.is_valid()) {
      word_with_expr("", value.expr);
    } else {
      number(*value.value);
    }
  } else if constexpr (std::is_same_v<T, ValueId>) {
    this->value(value);
  } else if constexpr (std::is_same_v<T, MetaRange>) {
    meta(value.range);
  } else if constexpr (std::is_same_v<T, ArgRange>) {
    meta(value);
  } else if constexpr (std::is_same_v<T, Placement>) {
    placement(value);
  } else {
    record(value);
  }
}

template <class Record>
void TextPrinter::record(const Record& item) {
  out_ += '{';
  Commas commas(out_);
  Record::visit(item, [&]<class T>(std::string_view field_name, const T& value) {
    if constexpr (std::is_same_v<Record, StorageRecord> && std::is_same_v<T, uint64_t>) {
      return member(commas, field_name, value);  // always print the id, because readers need it
    }
    if constexpr (std::is_same_v<Record, Symbol> && std::is_same_v<T, StringId>) {
      // Protobuf records whether the field `node` is present. A present field is printed even if it
      // contains the empty string.
      if (field_name == "node" && value.is_valid()) return member(commas, field_name, value);
    }
    member_unless_default(commas, field_name, value);
  });
  unknown_member(commas, item.unknown);
  out_ += '}';
}

}  // namespace fxopt
