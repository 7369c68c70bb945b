// Prints the module, its graphs and its nodes.

#include "ir/io/fxg_print.h"

#include <algorithm>
#include <utility>

namespace fxopt {

void TextPrinter::module() {
  version();
  module_line();
  if (module_.producer) line("producer", *module_.producer);
  lines("symbol", module_.symbols);
  lines("assertion", module_.assertions);
  for (size_t i = 0; options_.storages && i < module_.num_storages(); ++i)
    line("storage", module_.storage(StorageId(i)));
  lines("process_group", module_.groups);
  lines("device_mesh", module_.meshes);
  lines("op_schema", module_.op_schemas);
  lines("constant", module_.constants);
  lines("rng_slot", module_.rng_slots);
  lines("stream", module_.streams);
  if (module_.rank) line("rank", *module_.rank);
  counters();
  lines("erased", module_.erased);
  lines("invocation", module_.invocations);
  if (module_.meta.count > 0) {
    out_ += "meta ";
    meta(module_.meta);
    out_ += '\n';
  }
  carried("profile", module_.profile);
  carried("memory_plan", module_.memory_plan);
  if (module_.certificate) line("certificate", *module_.certificate);
  uint64_t next_uid = 0;
  for (const GraphId id : module_.graphs()) graph(module_.graph(id), next_uid);
}

void TextPrinter::module_line() {
  if (is_default(module_.name) && module_.unknown.empty()) return;
  out_ += "module {";
  Commas commas(out_);
  member_unless_default(commas, "name", module_.name);
  unknown_member(commas, module_.unknown);
  out_ += "}\n";
}

void TextPrinter::carried(std::string_view keyword, const std::optional<std::string>& message) {
  if (!message) return;
  (out_ += keyword) += ' ';
  bytes(*message);
  out_ += '\n';
}

// Prints only the counters that the parser would not derive from nodes and storages.
void TextPrinter::counters() {
  uint64_t next_uid = 0;
  for (const GraphId graph_id : module_.graphs()) {
    const Graph& graph = module_.graph(graph_id);
    for (const NodeId id : graph.nodes()) next_uid = std::max(next_uid, graph[id].uid + 1);
  }
  uint64_t next_storage = 0;
  for (size_t i = 0; i < module_.num_storages(); ++i) {
    next_storage = std::max(next_storage, module_.storage(StorageId(i)).id + 1);
  }
  const size_t begin = out_.size();
  out_ += "counters {";
  const size_t empty = out_.size();
  Commas commas(out_);
  if (module_.next_uid != next_uid) member(commas, "next_uid", module_.next_uid);
  if (module_.next_storage != next_storage) member(commas, "next_storage", module_.next_storage);
  if (!module_.name_counters.empty()) {
    commas.next();
    out_ += "names=[";
    Commas items(out_);
    for (const Module::PlacedCounter& counter : module_.placed_counters()) {
      items.next();
      out_ += "{graph=";
      number(counter.graph);
      (out_ += ", base=") += quote(counter.base);
      out_ += ", next=";
      number(counter.next);
      out_ += '}';
    }
    out_ += ']';
  }
  if (out_.size() == empty) {
    out_.resize(begin);
  } else {
    out_ += "}\n";
  }
}

void TextPrinter::graph(const Graph& graph, uint64_t& next_uid) {
  graph_ = &graph;
  pool_ = &graph.pool();
  out_ += "graph @";
  name(module_.text(graph.name()));
  out_ += ' ';
  const size_t begin = out_.size();
  record(graph);
  if (out_.size() == begin + std::string_view("{}").size()) out_.resize(begin);
  out_ += out_.size() > begin ? " {\n" : "{\n";
  for (const OutputSpec& spec : graph.outputs) {
    out_ += "  ";
    line("output_spec", spec);
  }
  for (const Attribute& attribute : graph.attributes) {
    out_ += "  ";
    line("attribute", attribute);
  }
  for (const SubclassLayout& layout : graph.subclasses) {
    out_ += "  ";
    line("subclass_layout", layout);
  }
  for (const NodeId id : graph.nodes()) {
    out_ += "  ";
    node(graph, id, next_uid);
    out_ += '\n';
    next_uid = graph[id].uid + 1;
  }
  out_ += "}\n";
  graph_ = nullptr;
  pool_ = &module_.pool;
}

std::string_view TextPrinter::target_of(const Node& node) const {
  return node.target.is_valid() ? module_.text(module_.target(node.target).name) : std::string_view();
}

bool TextPrinter::is_return(const Node& node) const {
  return node.kind == NodeKind::kOutput && node.args.count == 1 && node.kwargs.count == 0 && !node.value.is_valid() &&
         module_.text(node.name) == "output" && target_of(node) == "output";
}

void TextPrinter::node(const Graph& graph, NodeId id, uint64_t expected_uid) {
  graph_ = &graph;
  pool_ = &graph.pool();
  const Node& node = graph[id];
  if (!is_return(node)) {
    out_ += '%';
    name(module_.text(node.name));
    if (node.value.is_valid()) {
      out_ += ": ";
      value(node.value);
    }
    out_ += " = ";
  }
  call(graph, id);
  attributes(graph, id, expected_uid);
}

void TextPrinter::callee(const Node& node) {
  const std::string_view target = target_of(node);
  const auto with_target = [&] { ((out_ += '[') += quote(target)) += ']'; };
  if (node.kind == NodeKind::kCallFunction) {
    if (is_plain_target(target)) {
      out_ += target;
    } else {
      out_ += "call";
      with_target();
    }
    return;
  }
  const std::string_view known = name_of(node.kind);
  if (known.empty() || node.kind == NodeKind::kUnspecified) {
    word_with_enum("kind", node.kind);
    return with_target();
  }
  out_ += known;
  const bool implied = (node.kind == NodeKind::kPlaceholder && target == module_.text(node.name)) ||
                       (node.kind == NodeKind::kOutput && target == "output");
  if (!implied) with_target();
}

void TextPrinter::arguments(const Node& node) {
  out_ += '(';
  Commas commas(out_);
  for (uint32_t i = 0; i < node.args.count; ++i) {
    commas.next();
    arg(ArgIndex(node.args.first + i));
  }
  for (uint32_t i = 0; i + 1 < node.kwargs.count; i += 2) {
    commas.next();
    const ArgIndex key(node.kwargs.first + i);
    name(module_.text(pool_->arg(key).as_string()));
    out_ += '=';
    entry_unknown(key);
    arg(ArgIndex(key.index() + 1));
  }
  out_ += ')';
}

void TextPrinter::attributes(const Graph& graph, NodeId id, uint64_t expected_uid) {
  const Node& node = graph[id];
  const size_t begin = out_.size();
  out_ += " {";
  const size_t empty = out_.size();
  Commas commas(out_);
  if (options_.uids && node.uid != expected_uid) member(commas, "uid", node.uid);
  const NodeExtra* extra = graph.extra(id);
  member_unless_default(commas, "phase", node.phase);
  if (node.phase_markers != 0) {
    std::vector<PhaseMarker> markers;
    for (uint8_t bit = 0; bit < 32; ++bit) {
      if ((node.phase_markers >> bit & 1U) != 0) markers.push_back(static_cast<PhaseMarker>(bit));
    }
    member(commas, "phase_markers", markers);
  }
  member_unless_default(commas, "tag", node.tag);
  if (extra != nullptr) {
    member_unless_default(commas, "tag_source", extra->tag_source);
    member_unless_default(commas, "verdict", extra->verdict);
    member_unless_default(commas, "mark_verdict", extra->mark_verdict);
  }
  common_attributes(commas, node);
  if (extra != nullptr) rare_attributes(commas, *extra);
  member_unless_default(commas, "meta", node.meta);
  if (extra != nullptr) unknown_member(commas, extra->unknown);
  if (out_.size() == empty) {
    out_.resize(begin);
  } else {
    out_ += '}';
  }
}

void TextPrinter::common_attributes(Commas& commas, const Node& node) {
  if (node.region.is_valid()) member(commas, "region", module_.region(node.region));
  if (node.module_path.is_valid()) member(commas, "module_path", node.module_path);
  member_unless_default(commas, "module_path_source", node.module_path_source);
  if (node.has_seq_nr) member(commas, "seq_nr", node.seq_nr);
  if (node.source.is_valid()) member(commas, "source", module_.source(node.source));
}

void TextPrinter::rare_attributes(Commas& commas, const NodeExtra& extra) {
  member_unless_default(commas, "origins", extra.origins);
  if (!extra.control.empty()) {
    commas.next();
    control(extra.control);
  }
  member_unless_default(commas, "stream", extra.stream);
  member_unless_default(commas, "bucket", extra.bucket);
  member_unless_default(commas, "capture", extra.capture);
  member_unless_default(commas, "remarks", extra.remarks);
  member_unless_default(commas, "input", extra.input);
  member_unless_default(commas, "rng", extra.rng);
  member_unless_default(commas, "event_record", extra.event_record);
  member_unless_default(commas, "event_wait", extra.event_wait);
}

void TextPrinter::control(const std::vector<ControlDep>& deps) {
  listed(static_cast<uint32_t>(deps.size()), "control=[", "]", [&](uint32_t i) {
    enumerator(deps[i].kind);
    out_ += " %";
    name(graph_->name_of(deps[i].node));
  });
}

void TextPrinter::call(const Graph& graph, NodeId id) {
  graph_ = &graph;
  pool_ = &graph.pool();
  const Node& node = graph[id];
  if (is_return(node)) {
    out_ += "return ";
    arg(ArgIndex(node.args.first));
  } else {
    callee(node);
    arguments(node);
  }
}

void TextPrinter::named_records() {
  lines("symbol", module_.symbols);
  lines("process_group", module_.groups);
  lines("device_mesh", module_.meshes);
  lines("stream", module_.streams);
  if (module_.rank) line("rank", *module_.rank);
  lines("invocation", module_.invocations);
}

std::string print_text(const Module& module, const TextOptions& options) {
  TextPrinter printer(module, options);
  printer.module();
  return printer.take();
}

std::string print_text(const Graph& graph, const TextOptions& options) {
  TextPrinter printer(graph.module(), options);
  printer.version();
  uint64_t next_uid = 0;
  printer.graph(graph, next_uid);
  return printer.take();
}

std::string print_node(const Graph& graph, NodeId node) {
  TextPrinter printer(graph.module(), TextOptions());
  const NodeId previous = graph.prev(node);
  printer.node(graph, node, previous.is_valid() ? graph[previous].uid + 1 : 0);
  return printer.take();
}

std::string print_call(const Graph& graph, NodeId node) {
  TextPrinter printer(graph.module(), TextOptions());
  printer.call(graph, node);
  return printer.take();
}

std::string print_records_text(const Module& module) {
  TextPrinter printer(module, TextOptions());
  printer.named_records();
  return printer.take();
}

}  // namespace fxopt
