#include "ir/step/replay.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "core/hash_table.h"
#include "ir/alias/effects.h"
#include "ir/graph/module.h"
#include "ir/step/tags.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

constexpr std::string_view kCustom = "custom";
constexpr std::string_view kMark = "ap_must_save", kParts = "ap_must_save_getitem_indices";
constexpr std::string_view kName = "ap_must_save_as", kTotal = "ap_must_save_of";

// `value[1]`: the number. Nothing for others.
std::optional<int64_t> part_number(const Graph& graph, NodeId node) {
  if (!whole_of(graph, node).is_valid()) return std::nullopt;
  const Arg* key = graph.arg(node, 1);
  return key != nullptr && key->is(ArgKind::kInt) ? std::optional<int64_t>(key->as_int()) : std::nullopt;
}

std::vector<Arg> without_marks(const Graph& graph, std::span<const Arg> items) {
  std::vector<Arg> others;
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    const std::string_view key = items[i].is(ArgKind::kString) ? graph.module().text(items[i].as_string()) : "";
    if (key == kMark || key == kParts || key == kName || key == kTotal) continue;
    others.insert(others.end(), {items[i], items[i + 1]});
  }
  return others;
}

void write(Graph& graph, NodeId node, const ReplayMark& mark) {
  Module& module = graph.module();
  const Arg* custom = graph.meta_entry(node, kCustom);
  const bool is_dict = custom != nullptr && custom->is(ArgKind::kDict);
  std::vector<Arg> items = is_dict ? without_marks(graph, graph.pool().children(*custom)) : std::vector<Arg>();
  const auto add = [&](std::string_view key, Arg value) {
    items.insert(items.end(), {Arg::string(module.intern(key)), value});
  };
  add(kMark, Arg::boolean(true));
  if (mark.has_parts) {
    std::vector<Arg> parts;
    for (const int64_t part : mark.parts) parts.push_back(Arg::integer(part));
    add(kParts, Arg::children(ArgKind::kList, graph.pool().append(parts)));
  }
  if (mark.name.is_valid()) add(kName, Arg::string(mark.name));
  if (mark.total > 0) add(kTotal, Arg::integer(mark.total));

  std::vector<Arg> entries;
  for (const Arg& entry : graph.pool().args(graph[node].meta)) entries.push_back(entry);
  const Arg dict = Arg::children(ArgKind::kDict, graph.pool().append(items));
  bool is_there = false;
  for (size_t i = 0; i + 1 < entries.size(); i += 2) {
    if (module.text(entries[i].as_string()) != kCustom) continue;
    entries[i + 1] = dict;
    is_there = true;
  }
  if (!is_there) entries.insert(entries.end(), {Arg::string(module.intern(kCustom)), dict});
  graph.set_meta(node, graph.pool().append(entries));
}

}  // namespace

ReplayMark replay_mark(const Graph& graph, NodeId node) {
  ReplayMark mark;
  const Arg* custom = graph.meta_entry(node, kCustom);
  if (custom == nullptr || !custom->is(ArgKind::kDict)) return mark;
  const std::span<const Arg> items = graph.pool().children(*custom);
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (!items[i].is(ArgKind::kString)) continue;
    const std::string_view key = graph.module().text(items[i].as_string());
    const Arg& value = items[i + 1];
    if (key == kMark) mark.exists = !value.is(ArgKind::kNone) && (!value.is(ArgKind::kBool) || value.as_bool());
    if (key == kName && value.is(ArgKind::kString)) mark.name = value.as_string();
    if (key == kTotal && value.is(ArgKind::kInt)) mark.total = value.as_int();
    if (key != kParts || !value.has_children()) continue;
    mark.has_parts = true;
    for (const Arg& part : graph.pool().children(value)) {
      if (part.is(ArgKind::kInt)) mark.parts.push_back(part.as_int());
    }
  }
  std::sort(mark.parts.begin(), mark.parts.end());
  return mark;
}

bool is_marked_saved(const Graph& graph, NodeId node) {
  const std::optional<int64_t> part = part_number(graph, node);
  ReplayMark mark = replay_mark(graph, node);
  if (!part.has_value()) return mark.exists && !mark.has_parts;
  if (ReplayMark of_whole = replay_mark(graph, whole_of(graph, node)); of_whole.exists) {
    mark = std::move(of_whole);
  }
  return mark.exists && (!mark.has_parts || std::binary_search(mark.parts.begin(), mark.parts.end(), *part));
}

size_t mark_saved(Graph& graph, std::span<const NodeId> saved) {
  std::vector<NodeId> order;
  HashMap<NodeId, ReplayMark> marks;
  size_t total = 0;
  for (const NodeId node : saved) {
    const ValueKind kind = graph.value(node).kind;
    if (!graph[node].is_call() || kind == ValueKind::kSymbolic || kind == ValueKind::kScalar) continue;
    const std::optional<int64_t> part = part_number(graph, node);
    const NodeId whole = part.has_value() ? whole_of(graph, node) : node;
    const NodeId marked = graph[whole].is_call() ? whole : node;
    ReplayMark& mark = marks[marked];
    if (!mark.exists) order.push_back(marked);
    mark.exists = true;
    mark.name = graph[marked].name;
    if (marked != node) {
      mark.has_parts = true;
      mark.parts.push_back(*part);
    }
    if (wants_recompute(graph[node].tag)) graph[node].tag = Tag::kMustSave;
    ++total;
  }
  size_t changed = 0;
  for (const NodeId node : order) {
    ReplayMark& mark = marks[node];
    mark.total = static_cast<int64_t>(total);
    std::sort(mark.parts.begin(), mark.parts.end());
    if (replay_mark(graph, node) == mark) continue;
    write(graph, node, mark);
    ++changed;
  }
  return changed;
}

void merge_replay_marks(Graph& graph, NodeId kept, NodeId gone) {
  const ReplayMark other = replay_mark(graph, gone);
  if (!other.exists) return;
  ReplayMark mark = replay_mark(graph, kept);
  if (!mark.exists) return write(graph, kept, other);
  if (!mark.has_parts) return;
  std::vector<int64_t> parts;
  std::set_union(mark.parts.begin(), mark.parts.end(), other.parts.begin(), other.parts.end(),
                 std::back_inserter(parts));
  if (parts == mark.parts && other.has_parts) return;
  mark.parts = std::move(parts);
  mark.has_parts = other.has_parts;
  write(graph, kept, mark);
}

}  // namespace fxopt
