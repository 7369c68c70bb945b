// Parses files, records and graphs, and their words, strings and numbers.

#include "ir/io/fxg_parse.h"

#include <algorithm>
#include <utility>

#include "core/bytes.h"

namespace fxopt {
namespace {

constexpr size_t kMaxSuggestedLength = 128;  // closest_name is quadratic in the length
constexpr size_t kMaxShownLength = 64;
constexpr uint64_t kTextVersion = 0;

struct ModuleFields {
  StringId name;
  std::string unknown;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("name", self.name);
  }
};

struct NameCounter {
  uint32_t graph = 0;
  StringId base;
  uint64_t next = 0;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("graph", self.graph);
    field("base", self.base);
    field("next", self.next);
  }
};

struct CounterFields {
  std::optional<uint64_t> next_uid;
  std::optional<uint64_t> next_storage;
  std::vector<NameCounter> names;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("next_uid", self.next_uid);
    field("next_storage", self.next_storage);
    field("names", self.names);
  }
};

}  // namespace

std::string suggest(std::string_view word, const std::vector<std::string_view>& candidates) {
  if (word.size() > kMaxSuggestedLength) return std::string();
  std::vector<std::string_view> likely;
  // closest_name() rejects candidates whose length differs by more than this.
  const size_t slack = word.size() / 3 + 1;
  for (const std::string_view candidate : candidates) {
    if (candidate.size() <= word.size() + slack && word.size() <= candidate.size() + slack) likely.push_back(candidate);
  }
  return suggestion(word, likely);
}

std::string shown(std::string_view text) {
  if (text.size() <= kMaxShownLength) return quote(text);
  return quote(text.substr(0, kMaxShownLength)) + "...";
}

TextParser::TextParser(std::string_view source, const std::string& file, const ReadLimits& limits)
    : source_(source),
      file_(file),
      limits_(limits),
      lexer_(source),
      module_(std::make_unique<Module>()),
      graph_begin_(lexer_) {
  use_pool(module_->pool);
}

void TextParser::use_pool(Pool& pool) {
  pool_ = &pool;
  stack_.emplace(pool);
}

Result<std::unique_ptr<Module>> TextParser::run() {
  bool ok = file_header();
  while (ok && lexer_.token().kind != TokenKind::kEnd) ok = module_item();
  if (!ok || !finish_module()) return *error_;
  return std::move(module_);
}

bool TextParser::file_header() {
  if (!lexer_.is_word("fxg")) return true;
  lexer_.advance();
  const size_t at = offset();
  const std::optional<uint64_t> version = integer<uint64_t>();
  if (version && *version != kTextVersion) {
    return fail(ErrorCode::kVersion, at, "this build reads version 0 of the text form, not " + std::to_string(*version),
                "convert the file with the fxopt that wrote it");
  }
  return version.has_value();
}

template <class Record>
bool TextParser::single(std::optional<Record>& slot) {
  if (slot) return fail(ErrorCode::kDuplicateName, offset(), "this record may occur only once in a file");
  return record(slot.emplace());
}

template <class Record>
bool TextParser::append(std::vector<Record>& list) {
  Record item{};
  if (!record(item)) return false;
  list.push_back(std::move(item));
  return true;
}

bool TextParser::module_item() {
  struct Item {
    std::string_view word;
    bool (*read)(TextParser&);
  };
  using P = TextParser;
  static constexpr Item kItems[] = {
      {"graph", [](P& p) { return p.graph(); }},
      {"module", [](P& p) { return p.module_fields(); }},
      {"producer", [](P& p) { return p.single(p.module_->producer); }},
      {"symbol", [](P& p) { return p.append(p.module_->symbols); }},
      {"assertion", [](P& p) { return p.append(p.module_->assertions); }},
      {"storage", [](P& p) { return p.storage(); }},
      {"process_group", [](P& p) { return p.append(p.module_->groups); }},
      {"device_mesh", [](P& p) { return p.append(p.module_->meshes); }},
      {"op_schema", [](P& p) { return p.append(p.module_->op_schemas); }},
      {"constant", [](P& p) { return p.append(p.module_->constants); }},
      {"rng_slot", [](P& p) { return p.append(p.module_->rng_slots); }},
      {"stream", [](P& p) { return p.append(p.module_->streams); }},
      {"rank", [](P& p) { return p.single(p.module_->rank); }},
      {"counters", [](P& p) { return p.counters(); }},
      {"erased", [](P& p) { return p.append(p.module_->erased); }},
      {"invocation", [](P& p) { return p.append(p.module_->invocations); }},
      {"meta",
       [](P& p) {
         if (std::exchange(p.has_meta_, true)) {
           return p.fail(ErrorCode::kDuplicateName, p.offset(), "the module's metadata is given twice");
         }
         return p.meta(p.module_->meta);
       }},
      {"profile", [](P& p) { return p.carried(p.module_->profile); }},
      {"memory_plan", [](P& p) { return p.carried(p.module_->memory_plan); }},
      {"certificate", [](P& p) { return p.single(p.module_->certificate); }},
  };
  if (!at_word("a record or a graph")) return false;
  const std::string_view word = lexer_.text();
  for (const Item& item : kItems) {
    if (item.word != word) continue;
    lexer_.advance();
    return item.read(*this);
  }
  std::vector<std::string_view> words;
  for (const Item& item : kItems) words.push_back(item.word);
  return fail_here(shown(word) + " starts neither a record nor a graph", suggest(word, words));
}

bool TextParser::module_fields() {
  if (std::exchange(has_module_fields_, true)) {
    return fail(ErrorCode::kDuplicateName, offset(), "this record may occur only once in a file");
  }
  ModuleFields item;
  if (!record(item)) return false;
  module_->name = item.name;
  module_->unknown = std::move(item.unknown);
  return true;
}

bool TextParser::storage() {
  const size_t at = offset();
  StorageRecord item;
  if (!record(item)) return false;
  if (item.id == UINT64_MAX) return fail(ErrorCode::kLimit, at, "this id is too large: the largest id is 2^64 - 2");
  if (module_->find_storage(item.id).is_valid()) {
    return fail(ErrorCode::kDuplicateName, at, "storage " + std::to_string(item.id) + " is given twice",
                "give each storage its own id, and put its record before the tensors that refer to it");
  }
  module_->add_storage(std::move(item));
  return true;
}

bool TextParser::counters() {
  const size_t at = counters_at_ = offset();
  if (std::exchange(has_counters_, true)) {
    return fail(ErrorCode::kDuplicateName, at, "this record may occur only once in a file");
  }
  CounterFields item;
  if (!record(item)) return false;
  given_next_uid_ = item.next_uid;
  given_next_storage_ = item.next_storage;
  for (const NameCounter& counter : item.names) {
    const std::pair<GraphId, std::string> key(GraphId(counter.graph), module_->text(counter.base));
    if (!module_->name_counters.emplace(key, counter.next).second) {
      return fail(ErrorCode::kDuplicateName, at, "the counter of " + shown(key.second) + " is given twice");
    }
  }
  return true;
}

bool TextParser::carried(std::optional<std::string>& message) {
  if (message) return fail(ErrorCode::kDuplicateName, offset(), "this message may occur only once in a file");
  message = bytes_literal();
  return message.has_value();
}

bool TextParser::finish_module() {
  if (!module_->op_schemas.empty()) module_->resolve_targets();
  if (given_next_uid_.value_or(next_uid_) < next_uid_ ||
      given_next_storage_.value_or(module_->next_storage) < module_->next_storage) {
    return fail(ErrorCode::kBadValue, counters_at_, "a counter must be above all numbers in use",
                "leave the counter out: fxopt derives it");
  }
  for (const auto& [key, next] : module_->name_counters) {
    if (!module_->has_graph(key.first)) {
      return fail(ErrorCode::kBadReference, counters_at_,
                  "a name counter refers to graph " + std::to_string(key.first.index()) +
                      ", but the number of graphs is " + std::to_string(module_->num_graphs()));
    }
  }
  module_->next_uid = given_next_uid_.value_or(next_uid_);
  module_->next_storage = given_next_storage_.value_or(module_->next_storage);
  return true;
}

bool TextParser::graph() {
  if (!expect('@')) return false;
  const size_t at = offset();
  const std::optional<std::string_view> graph_name = name();
  if (!graph_name) return false;
  const StringId id = module_->intern(*graph_name);
  if (module_->find_graph(id).is_valid()) {
    return fail(ErrorCode::kDuplicateName, at, "graph " + shown(*graph_name) + " is given twice");
  }
  graph_ = &module_->add_graph(id);
  use_pool(graph_->pool());
  if (!expect('{')) return false;
  // Empty braces contain fields only if another brace follows. A word before "=" is a field.
  // Anything else is an item of the graph.
  const bool has_fields = lexer_.is('}') ? lexer_.next_byte() == '{'
                                         : lexer_.token().kind == TokenKind::kIdentifier && lexer_.next_byte() == '=';
  if (has_fields && (!fields(*graph_, '}') || !expect('{'))) return false;
  graph_begin_ = lexer_;
  while (!lexer_.is('}')) {
    if (!graph_item()) return false;
  }
  if (!finish_graph()) return false;
  lexer_.advance();
  return true;
}

bool TextParser::graph_item() {
  if (lexer_.is('%')) return node();
  if (!at_word("a node, a record or \"}\"")) return false;
  const std::string_view word = lexer_.text();
  if (word == "return") return return_node();
  const std::vector<std::string_view> words = {"return", "output_spec", "attribute", "subclass_layout"};
  if (std::find(words.begin(), words.end(), word) == words.end()) {
    return fail_here(shown(word) + " starts neither a node nor a record of a graph", suggest(word, words));
  }
  lexer_.advance();
  if (word == "output_spec") return append(graph_->outputs);
  if (word == "attribute") return append(graph_->attributes);
  return append(graph_->subclasses);
}

bool TextParser::finish_graph() {
  // In a malformed text, scan_node_names() may have found a node that the parser did not read.
  std::optional<size_t> astray;
  for (const auto& [text, node] : later_nodes_) {
    if (!node.first_use || graph_->find(module_->strings.find(text)) == node.id) continue;
    astray = std::min(astray.value_or(*node.first_use), *node.first_use);
  }
  if (astray) return fail(ErrorCode::kBadReference, *astray, "this node is not defined in the graph");
  for (size_t i = 0; i < node_args_.size(); ++i) graph_->set_args(NodeId(i), node_args_[i].args, node_args_[i].kwargs);
  node_args_.clear();
  later_nodes_.clear();
  scanned_ = false;
  graph_ = nullptr;
  use_pool(module_->pool);
  return true;
}

bool TextParser::fail(ErrorCode code, size_t at, std::string message, std::string hint) {
  if (error_) return false;
  error_.emplace();
  error_->code = code;
  error_->message = std::move(message);
  error_->hint = std::move(hint);
  error_->where = locate(source_, at, file_);
  if (graph_ != nullptr) error_->where.graph = module_->text(graph_->name());
  error_->where.node = node_name_;
  return false;
}

bool TextParser::fail_here(std::string message, std::string hint) {
  if (lexer_.token().kind == TokenKind::kBad) message = lexer_.problem();
  return fail(ErrorCode::kSyntax, offset(), std::move(message), std::move(hint));
}

bool TextParser::unexpected(std::string_view wanted) {
  const bool at_end = lexer_.token().kind == TokenKind::kEnd;
  const std::string found = at_end ? "the end of the text" : shown(lexer_.text());
  return fail_here("expected " + std::string(wanted) + ", found " + found);
}

bool TextParser::expect(char punct) {
  if (!lexer_.is(punct)) return unexpected(quote(std::string_view(&punct, 1)));
  lexer_.advance();
  return true;
}

bool TextParser::at_word(std::string_view what) {
  return lexer_.token().kind == TokenKind::kIdentifier || unexpected(what);
}

std::optional<std::string_view> TextParser::string_literal() {
  const Token token = lexer_.token();
  if (token.kind != TokenKind::kString) {
    unexpected("a quoted string");
    return std::nullopt;
  }
  if (!check_length(token.length - 2)) return std::nullopt;
  std::string_view text = lexer_.text().substr(1, token.length - 2);
  if (text.find('\\') != std::string_view::npos) {
    std::optional<std::string> unescaped = unquote(lexer_.text());
    if (!unescaped) {
      fail(ErrorCode::kSyntax, token.offset, "the string holds an unknown escape",
           "write one of \\\" \\\\ \\n \\t \\r \\xNN");
      return std::nullopt;
    }
    unescaped_ = std::move(*unescaped);
    text = unescaped_;
  }
  if (!is_utf8(text)) {
    fail(ErrorCode::kBadValue, token.offset, "the string is not valid UTF-8", "write bytes as base64\"...\"");
    return std::nullopt;
  }
  lexer_.advance();
  return text;
}

std::optional<std::string> TextParser::bytes_literal() {
  if (!lexer_.is_word("base64")) {
    unexpected("base64\"...\"");
    return std::nullopt;
  }
  lexer_.advance();
  const Token token = lexer_.token();
  if (token.kind != TokenKind::kString) {
    unexpected("a quoted string");
    return std::nullopt;
  }
  std::optional<std::string> bytes = from_base64(lexer_.text().substr(1, token.length - 2));
  if (!bytes) {
    fail_here("this is not base64", "use the alphabet of RFC 4648 with padding");
    return std::nullopt;
  }
  lexer_.advance();
  return bytes;
}

std::optional<std::string> TextParser::suffix() {
  if (!lexer_.is('~')) return std::string();
  lexer_.advance();
  return bytes_literal();
}

std::optional<std::string_view> TextParser::name() {
  if (lexer_.token().kind == TokenKind::kString) return string_literal();
  if (!at_word("a name") || !check_length(lexer_.token().length)) return std::nullopt;
  const std::string_view text = lexer_.text();
  lexer_.advance();
  return text;
}

std::optional<StringId> TextParser::interned() {
  const std::optional<std::string_view> text = string_literal();
  if (!text) return std::nullopt;
  return module_->intern(*text);
}

bool TextParser::check_length(size_t bytes) {
  return bytes <= limits_.max_string_bytes ||
         fail(ErrorCode::kLimit, offset(),
              "a string of " + std::to_string(bytes) + " bytes is beyond the limit of " +
                  std::to_string(limits_.max_string_bytes));
}

bool TextParser::check_depth(uint32_t depth) {
  return depth <= limits_.max_depth ||
         fail(ErrorCode::kLimit, offset(), "nesting deeper than " + std::to_string(limits_.max_depth) + " levels");
}

Result<std::unique_ptr<Module>> parse_text(std::string_view bytes, const std::string& file, const ReadLimits& limits) {
  return TextParser(bytes, file, limits).run();
}

}  // namespace fxopt
