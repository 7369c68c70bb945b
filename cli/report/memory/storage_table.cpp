#include "cli/report/memory/storage_table.h"

#include "cli/print/nodes.h"
#include "ir/graph/module.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

// Calls visit() for each text of `from` and the same text of `to`. Copies all numbers.
template <class A, class B, class Visit>
void visit_texts(const StorageFields<A>& from, StorageFields<B>& to, Visit visit) {
  visit(from.node, to.node);
  visit(from.label, to.label);
  visit(from.module_path, to.module_path);
  visit(from.type, to.type);
  visit(from.target, to.target);
  visit(from.source, to.source);
  visit(from.fqn, to.fqn);
  visit(from.phase, to.phase);
  visit(from.kind, to.kind);
  visit(from.first, to.first);
  visit(from.last, to.last);
  to.bytes = from.bytes;
  to.first_place = from.first_place;
  to.last_place = from.last_place;
}

}  // namespace

StorageRow StorageTable::row(const StorageEntry& entry) const {
  StorageRow row;
  visit_texts(entry, row, [this](StringId id, std::string& text) { text = (*texts)[id]; });
  return row;
}

StorageEntry StorageTable::entry(const StorageRow& row) const {
  StorageEntry entry;
  visit_texts(row, entry, [this](const std::string& text, StringId& id) { id = texts->intern(text); });
  return entry;
}

StorageEntry StorageLister::entry(const MemoryTrace& trace, const TraceBlock& block) {
  const Graph& graph = *footprint_.graph;
  const Node& node = graph[block.node];
  StorageEntry entry;
  entry.node = text_of(node.name);
  entry.label = block.label.empty() ? StringId(0) : texts_.intern(block.label);
  entry.module_path = text_of(node.module_path);
  if (entry.module_path == StringId(0)) entry.module_path = texts_.intern(module_of(graph, block.node));
  entry.type = type_of(block.buffer);
  const bool has_target = node.is_call() && node.target.is_valid();
  entry.target = text_of(has_target ? graph.module().target(node.target).name : StringId());
  entry.source = source_of(block.node);
  const NodeExtra* extra = graph.extra(block.node);
  entry.fqn = text_of(extra != nullptr && extra->input.has_value() ? extra->input->fqn : StringId());
  // An input exists before every phase, so it has none.
  entry.phase = node.is_call() ? texts_.intern(name_of(footprint_.phases.phase[block.node])) : StringId(0);
  entry.kind = texts_.intern(memory_class_name(block.kind));
  entry.bytes = block.bytes;
  entry.first = text_of(graph[trace.schedule[block.first]].name);
  entry.last = text_of(graph[trace.schedule[block.last]].name);
  entry.first_place = block.first;
  entry.last_place = block.last;
  return entry;
}

StringId StorageLister::text_of(StringId id) {
  if (!id.is_valid()) return StringId(0);  // the empty text
  StringId& known = known_[id];
  if (!known.is_valid()) known = texts_.intern(footprint_.graph->module().text(id));
  return known;
}

StringId StorageLister::type_of(BufferId buffer) {
  if (!buffer.is_valid() || !footprint_.storages.buffer(buffer).value.is_valid()) return StringId(0);
  const Graph& graph = *footprint_.graph;
  const Value& value = graph.pool().value(footprint_.storages.buffer(buffer).value);
  if (value.kind != ValueKind::kTensor) return texts_.intern(value_text(graph, value));
  const Tensor& tensor = graph.pool().tensor(value);
  const uint64_t key = (static_cast<uint64_t>(tensor.dtype) << 32) | tensor.sizes.index();
  StringId& known = types_[key];
  if (!known.is_valid()) known = texts_.intern(value_text(graph, value));
  return known;
}

StringId StorageLister::source_of(NodeId node) {
  const SourceId source = (*footprint_.graph)[node].source;
  if (!source.is_valid()) return StringId(0);
  if (!has_own_frame(*footprint_.graph, node)) return texts_.intern(source_text(*footprint_.graph, node));
  StringId& known = sources_[source];
  if (!known.is_valid()) known = texts_.intern(source_text(*footprint_.graph, node));
  return known;
}

}  // namespace fxopt
