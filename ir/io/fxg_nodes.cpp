// Parses nodes, and references to nodes that may be defined later.

#include <algorithm>
#include <utility>

#include "core/bytes.h"
#include "ir/io/fxg_parse.h"

namespace fxopt {
namespace {

constexpr unsigned kMaxPhaseMarkers = 32;  // Node::phase_markers has that many bits

struct CalleeWord {
  std::string_view word;
  NodeKind kind;
};
constexpr CalleeWord kCalleeWords[] = {
    {"call", NodeKind::kCallFunction}, {"placeholder", NodeKind::kPlaceholder}, {"get_attr", NodeKind::kGetAttr},
    {"output", NodeKind::kOutput},     {"call_method", NodeKind::kCallMethod},  {"call_module", NodeKind::kCallModule},
};

}  // namespace

struct TextParser::NodeFields {
  std::optional<uint64_t> uid;
  Phase phase = Phase::kUnspecified;
  std::vector<PhaseMarker> phase_markers;
  Tag tag = Tag::kNone;
  std::optional<Region> region;
  std::optional<StringId> module_path;
  StringId module_path_source;
  std::optional<int64_t> seq_nr;
  std::optional<Source> source;
  ArgRange meta;
  NodeExtra extra;
  std::string unknown;

  template <class Self, class Field>
  static void visit(Self& self, Field&& field) {
    field("uid", self.uid);
    field("phase", self.phase);
    field("phase_markers", self.phase_markers);
    field("tag", self.tag);
    field("tag_source", self.extra.tag_source);
    field("verdict", self.extra.verdict);
    field("mark_verdict", self.extra.mark_verdict);
    field("region", self.region);
    field("module_path", self.module_path);
    field("module_path_source", self.module_path_source);
    field("seq_nr", self.seq_nr);
    field("source", self.source);
    field("origins", self.extra.origins);
    field("control", self.extra.control);
    field("stream", self.extra.stream);
    field("bucket", self.extra.bucket);
    field("capture", self.extra.capture);
    field("remarks", self.extra.remarks);
    field("input", self.extra.input);
    field("rng", self.extra.rng);
    field("event_record", self.extra.event_record);
    field("event_wait", self.extra.event_wait);
    field("meta", self.meta);
  }
};

bool TextParser::node() {
  if (!expect('%')) return false;
  const size_t name_offset = offset();
  const std::optional<std::string_view> node_name = name();
  if (!node_name) return false;
  node_name_ = *node_name;
  const StringId name_id = module_->intern(*node_name);
  ValueId value_id;
  if (accept(':')) {
    const std::optional<ValueId> read = value();
    if (!read) return false;
    value_id = *read;
  }
  if (!expect('=')) return false;
  const std::optional<Callee> what = callee(name_id);
  if (!what || !add_node(name_id, name_offset, *what)) return false;
  const NodeId id(graph_->num_ids() - 1);
  (*graph_)[id].value = value_id;
  return call_arguments(node_args_.back()) && node_fields(id);
}

bool TextParser::return_node() {
  const size_t at = offset();
  lexer_.advance();
  node_name_ = "output";
  const Callee what{NodeKind::kOutput, module_->target("output")};
  if (!add_node(module_->intern("output"), at, what)) return false;
  const NodeId id(graph_->num_ids() - 1);
  const size_t mark = stack_->mark();
  may_name_nodes_ = true;
  if (!arg(1)) return false;
  may_name_nodes_ = false;
  node_args_.back().args = stack_->take(mark);
  return node_fields(id);
}

bool TextParser::add_node(StringId name_id, size_t at, const Callee& what) {
  if (graph_->find(name_id).is_valid()) {
    return fail(ErrorCode::kDuplicateName, at, "node " + shown(node_name_) + " is defined twice in this graph",
                "rename one");
  }
  if (++nodes_read_ > limits_.max_nodes) {
    return fail(ErrorCode::kLimit, at, "more than " + std::to_string(limits_.max_nodes) + " nodes");
  }
  graph_->add_node(what.kind, name_id, what.target, expected_uid_);
  node_args_.emplace_back();
  return true;
}

std::optional<TextParser::Callee> TextParser::callee(StringId node_name) {
  if (!at_word("a call target")) return std::nullopt;
  const std::string_view word = lexer_.text();
  const size_t at = offset();
  lexer_.advance();
  if (word == "return") {
    fail(ErrorCode::kSyntax, at, "'return' does not take a name or '='", "write: return (%a, %b)");
    return std::nullopt;
  }
  Callee result;
  if (word == "kind") {
    if (!expect('(')) return std::nullopt;
    const std::optional<NodeKind> kind = enumerator<NodeKind>("a kind of node");
    if (!kind || !expect(')')) return std::nullopt;
    result.kind = *kind;
  } else if (is_plain_target(word)) {
    return Callee{NodeKind::kCallFunction, module_->target(word)};
  } else {
    result.kind = std::find_if(std::begin(kCalleeWords), std::end(kCalleeWords), [word](const CalleeWord& entry) {
                    return entry.word == word;
                  })->kind;
  }
  if (!lexer_.is('[') && result.kind == NodeKind::kPlaceholder) {
    if (node_name.index() != 0) result.target = module_->target(module_->text(node_name));
  } else if (!lexer_.is('[') && result.kind == NodeKind::kOutput) {
    result.target = module_->target("output");
  } else {
    const std::optional<std::string_view> target = bracketed_target();
    if (!target) return std::nullopt;
    if (!target->empty()) result.target = module_->target(*target);
  }
  return result;
}

std::optional<std::string_view> TextParser::bracketed_target() {
  if (!expect('[')) return std::nullopt;
  const std::optional<std::string_view> target = string_literal();
  if (!target || !expect(']')) return std::nullopt;
  return target;
}

bool TextParser::call_arguments(NodeArgs& result) {
  if (!expect('(')) return false;
  may_name_nodes_ = true;
  const size_t mark = stack_->mark();
  bool has_keywords = false;
  const auto read = [&] {
    const TokenKind kind = lexer_.token().kind;
    if ((kind == TokenKind::kIdentifier || kind == TokenKind::kString) && lexer_.next_byte() == '=') {
      if (!std::exchange(has_keywords, true)) result.args = stack_->take(mark);
      const std::optional<std::string_view> key = name();
      return key && expect('=') && entry(module_->intern(*key));
    }
    return has_keywords ? fail_here("a positional argument follows a keyword argument") : arg(1);
  };
  if (!items(')', read)) return false;
  may_name_nodes_ = false;
  (has_keywords ? result.kwargs : result.args) = stack_->take(mark);
  return expect(')');
}

bool TextParser::node_fields(NodeId id) {
  const size_t at = offset();
  if (lexer_.is('{')) {
    NodeFields item;
    if (!record(item) || !apply(item, id, at)) return false;
  }
  const uint64_t uid = (*graph_)[id].uid;
  if (uid == UINT64_MAX) return fail(ErrorCode::kLimit, at, "this uid is too large: the largest uid is 2^64 - 2");
  expected_uid_ = uid + 1;
  next_uid_ = std::max(next_uid_, expected_uid_);
  node_name_.clear();
  return true;
}

bool TextParser::apply(NodeFields& item, NodeId id, size_t at) {
  Node& node = (*graph_)[id];
  node.uid = item.uid.value_or(expected_uid_);
  node.phase = item.phase;
  for (const PhaseMarker marker : item.phase_markers) {
    const unsigned bit = static_cast<unsigned>(marker);
    if (bit >= kMaxPhaseMarkers) return fail(ErrorCode::kLimit, at, "a phase marker is not between 0 and 31");
    node.phase_markers |= uint32_t{1} << bit;
  }
  node.tag = item.tag;
  if (item.region) node.region = module_->region(*item.region);
  if (item.module_path) node.module_path = *item.module_path;
  node.module_path_source = item.module_path_source;
  node.has_seq_nr = item.seq_nr.has_value();
  node.seq_nr = item.seq_nr.value_or(0);
  if (item.source) node.source = module_->source(*item.source);
  node.meta = item.meta;
  item.extra.unknown = std::move(item.unknown);
  if (!item.extra.is_empty()) graph_->mutable_extra(id) = std::move(item.extra);
  return true;
}

bool TextParser::control_dep(ControlDep& dep) {
  const std::optional<ControlKind> kind = enumerator<ControlKind>("a kind of control dependency");
  if (!kind) return false;
  const std::optional<NodeId> id = node_reference();
  if (!id) return false;
  dep = ControlDep{*id, *kind};
  return true;
}

// A name without a definition so far may be defined later in the graph. Nodes get their ids in text
// order, so a scan of the graph's definitions finds the id. The scan runs at most once for each
// graph.
std::optional<NodeId> TextParser::node_reference() {
  const size_t at = offset();
  if (!expect('%')) return std::nullopt;
  std::optional<std::string_view> node_name = name();
  if (!node_name) return std::nullopt;
  const NodeId known = graph_->find(module_->strings.find(*node_name));
  if (known.is_valid()) return known;
  if (!scanned_) scan_node_names();
  const std::unordered_map<std::string, LaterNode>::iterator found = later_nodes_.find(std::string(*node_name));
  if (found == later_nodes_.end()) {
    undefined_node(*node_name, at);
    return std::nullopt;
  }
  if (!found->second.first_use) found->second.first_use = at;
  return found->second.id;
}

// A definition is a `return`, or a name followed by : or =, outside all brackets.
void TextParser::scan_node_names() {
  scanned_ = true;
  Lexer at = graph_begin_;
  size_t count = 0;
  const auto add = [&](std::string text) { later_nodes_.emplace(std::move(text), LaterNode{NodeId(count++), {}}); };
  for (int depth = 0; at.token().kind != TokenKind::kEnd;) {
    if (depth == 0 && at.is('}')) return;
    if (depth == 0 && at.is('@')) {
      at.take_device();
      continue;
    }
    if (depth == 0 && at.is_word("return")) add("output");
    if (at.is('(') || at.is('[') || at.is('{')) ++depth;
    if (at.is(')') || at.is(']') || at.is('}')) --depth;
    const bool is_name = depth == 0 && at.is('%');
    at.advance();
    if (!is_name) continue;
    const char behind = at.next_byte();
    std::string text(at.text());
    if (at.token().kind == TokenKind::kString) text = unquote(text).value_or(text);
    at.advance();
    if (behind == ':' || behind == '=') add(std::move(text));
  }
}

bool TextParser::undefined_node(std::string_view name, size_t at) {
  std::vector<std::pair<NodeId, std::string_view>> nodes;
  for (const NodeId id : graph_->nodes()) nodes.emplace_back(id, graph_->name_of(id));
  for (const auto& [text, node] : later_nodes_) nodes.emplace_back(node.id, text);
  std::sort(nodes.begin(), nodes.end());
  std::vector<std::string_view> names;
  for (const auto& [id, text] : nodes) names.push_back(text);
  return fail(ErrorCode::kBadReference, at, "there is no node " + shown(name) + " in this graph", suggest(name, names));
}

}  // namespace fxopt
