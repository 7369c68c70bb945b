#include "ir/step/marks.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "core/hash_table.h"
#include "ir/alias/effects.h"
#include "ir/graph/module.h"
#include "ir/step/halves.h"
#include "ir/step/tags.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

constexpr std::string_view kCustom = "custom";
constexpr std::string_view kMark = "ap_must_save", kParts = "ap_must_save_getitem_indices";
constexpr std::string_view kName = "ap_must_save_as", kTotal = "ap_must_save_of", kAlso = "ap_must_save_also";

bool is_key_of_mark(std::string_view key) {
  return key == kMark || key == kParts || key == kName || key == kTotal || key == kAlso;
}

// Returns the index of a getitem, such as 1 for `value[1]`. Returns nothing for other nodes.
std::optional<int64_t> part_number(const Graph& graph, NodeId node) {
  if (!whole_of(graph, node).is_valid()) return std::nullopt;
  const Arg* key = graph.arg(node, 1);
  return key != nullptr && key->is(ArgKind::kInt) ? std::optional<int64_t>(key->as_int()) : std::nullopt;
}

bool has_part(const Mark& mark, int64_t part) { return std::ranges::binary_search(mark.parts, part); }

bool names_part(const Mark& mark, int64_t part) { return mark.exists && (!mark.has_parts || has_part(mark, part)); }

// The endings of names in `also`. named_as() is for the name of a part (a result of the call), and
// merged_into() is for a name that was merged into the part.
std::string named_as(int64_t part) { return "=" + std::to_string(part); }
std::string merged_into(int64_t part) { return "@" + std::to_string(part); }

std::vector<Arg> without_marks(const Graph& graph, std::span<const Arg> items) {
  std::vector<Arg> others;
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    const std::string_view key = items[i].is(ArgKind::kString) ? graph.module().text(items[i].as_string()) : "";
    if (!is_key_of_mark(key)) others.insert(others.end(), {items[i], items[i + 1]});
  }
  return others;
}

// Replaces the mark in `custom`. If `mark` does not exist, removes the old mark, and also removes
// `custom` if it is then empty.
void write(Graph& graph, NodeId node, const Mark& mark) {
  Module& module = graph.module();
  const Arg* custom = graph.meta_entry(node, kCustom);
  const bool is_dict = custom != nullptr && custom->is(ArgKind::kDict);
  if (!mark.exists && !is_dict) return;
  std::vector<Arg> items = is_dict ? without_marks(graph, graph.pool().children(*custom)) : std::vector<Arg>();
  if (!mark.exists && items.size() == graph.pool().children(*custom).size()) return;
  const auto add = [&](std::string_view key, Arg value) {
    items.insert(items.end(), {Arg::string(module.intern(key)), value});
  };
  if (mark.exists) add(kMark, Arg::boolean(true));
  if (mark.exists && mark.has_parts) {
    std::vector<Arg> parts;
    for (const int64_t part : mark.parts) parts.push_back(Arg::integer(part));
    add(kParts, Arg::children(ArgKind::kList, graph.pool().append(parts)));
  }
  if (mark.exists && mark.name.is_valid()) add(kName, Arg::string(mark.name));
  if (mark.exists && mark.total > 0) add(kTotal, Arg::integer(mark.total));
  if (mark.exists && !mark.also.empty()) {
    std::vector<Arg> names;
    for (const StringId name : mark.also) names.push_back(Arg::string(name));
    add(kAlso, Arg::children(ArgKind::kList, graph.pool().append(names)));
  }

  std::vector<Arg> entries;
  for (const Arg& entry : graph.pool().args(graph[node].meta)) entries.push_back(entry);
  const Arg dict = Arg::children(ArgKind::kDict, graph.pool().append(items));
  size_t at = 0;
  while (at + 1 < entries.size() && module.text(entries[at].as_string()) != kCustom) at += 2;
  const bool is_there = at + 1 < entries.size();
  if (items.empty() && !is_there) return;
  if (items.empty()) {
    entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(at),
                  entries.begin() + static_cast<std::ptrdiff_t>(at + 2));
  } else if (is_there) {
    entries[at + 1] = dict;
  } else {
    entries.insert(entries.end(), {Arg::string(module.intern(kCustom)), dict});
  }
  graph.set_meta(node, graph.pool().append(entries));
}

void add_also(Graph& graph, Mark& mark, const std::string& name) {
  const StringId id = graph.module().intern(name);
  if (id != mark.name && std::ranges::find(mark.also, id) == mark.also.end()) mark.also.push_back(id);
}

// Returns the name of the call in the first partition.
StringId name_in(const Graph& graph, NodeId carrier, const Mark& mark) {
  return mark.name.is_valid() ? mark.name : graph[carrier].name;
}

std::vector<std::string> names_of_part(const Graph& graph, NodeId carrier, const Mark& mark, int64_t part) {
  const Module& module = graph.module();
  std::vector<std::string> names = {std::string(module.text(name_in(graph, carrier, mark))) + "[" +
                                    std::to_string(part) + "]"};
  for (const StringId also : mark.also) {
    const std::string_view text = module.text(also);
    for (const std::string& end : {named_as(part), merged_into(part)}) {
      if (!text.ends_with(end)) continue;
      std::string name(text.substr(0, text.size() - end.size()));
      end.front() == '=' ? names.front() = std::move(name) : names.emplace_back(std::move(name));
    }
  }
  return names;
}

std::vector<std::string> names_by(const Graph& graph, NodeId node, NodeId carrier, const Mark& mark) {
  if (carrier != node) return names_of_part(graph, carrier, mark, *part_number(graph, node));
  std::vector<std::string> names = {std::string(graph.module().text(name_in(graph, carrier, mark)))};
  for (const StringId name : mark.also) names.emplace_back(graph.module().text(name));
  return names;
}

// Moves the marks that getitems of the part store themselves into `names` and `total`. A trace
// would lose these marks, and a mark of the call hides them.
void take_own_marks(Graph& graph, NodeId whole, int64_t part, std::vector<std::string>& names, int64_t& total) {
  for (const NodeId user : graph.users(whole)) {
    if (part_number(graph, user) != part || mark_carrier(graph, user) != user) continue;
    const std::vector<std::string> own = marked_names(graph, user);
    if (own.empty()) continue;
    total = std::max(total, read_mark(graph, user).total);
    strip_mark(graph, user);
    names.insert(names.end(), own.begin(), own.end());
  }
}

// Marks a part with these names, in addition to the names that it has. Includes the marks that
// getitems of the part store.
void add_part(Graph& graph, NodeId carrier, Mark& mark, int64_t part, std::vector<std::string> names) {
  const bool is_known = names_part(mark, part);
  const std::vector<std::string> known =
      is_known ? names_of_part(graph, carrier, mark, part) : std::vector<std::string>();
  if (!is_known) {
    mark.has_parts = true;
    mark.parts.insert(std::lower_bound(mark.parts.begin(), mark.parts.end(), part), part);
    take_own_marks(graph, carrier, part, names, mark.total);
  }
  bool is_named = is_known;
  for (const std::string& name : names) {
    if (std::ranges::find(known, name) != known.end()) continue;
    add_also(graph, mark, name + (is_named ? merged_into(part) : named_as(part)));
    is_named = true;
  }
}

// Returns the number of marked parts that no getitem reads.
int64_t count_untaken(const Graph& graph, NodeId node, const Mark& mark) {
  std::vector<int64_t> taken;
  for (UseId use = graph.first_use(node); use.is_valid(); use = graph.use(use).next) {
    const NodeId user = graph.use(use).user;
    if (is_projection(graph, user) && graph.arg(user, 1)->is(ArgKind::kInt)) {
      taken.push_back(graph.arg(user, 1)->as_int());
    }
  }
  std::ranges::sort(taken);
  return std::ranges::count_if(mark.parts, [&](int64_t part) { return !std::ranges::binary_search(taken, part); });
}

class MarkFinder {
 public:
  MarkFinder(const Graph& graph, const PhaseMap& phases) : graph_(graph), phases_(phases) {
    marks_.is_saved = IdMap<NodeId, bool>(graph.num_ids(), false);
  }

  MarkMap run() {
    for (const NodeId node : graph_.nodes()) {
      if (graph_[node].is_call() && !phases_.is_backward(node)) look_at(node);
    }
    for (const NodeId node : graph_.nodes()) {
      if (!marks_.is_saved[node]) continue;
      marks_.values.push_back(node);
      const NodeId carrier = mark_carrier(graph_, node);
      for (std::string& name : names_by(graph_, node, carrier, read_mark(graph_, carrier)))
        names_.insert(std::move(name));
    }
    marks_.num_names = static_cast<int64_t>(names_.size());
    find_names_of_backward();
    marks_.num_lost = std::max({int64_t{0}, total_ - marks_.num_names, num_untaken_});
    return std::move(marks_);
  }

 private:
  void look_at(NodeId node) {
    const NodeId carrier = mark_carrier(graph_, node);
    const Mark mark = read_mark(graph_, carrier);
    if (!mark.exists) return;
    if (carrier == node && mark.has_parts && !part_number(graph_, node).has_value()) {
      const int64_t untaken = count_untaken(graph_, node, mark);
      if (untaken > 0 && !marks_.without_getitem.is_valid()) marks_.without_getitem = node;
      num_untaken_ += untaken;
    }
    if (!is_marked_saved(graph_, node)) return;
    total_ = std::max(total_, mark.total);
    for (const StringId name : mark.also) named_.insert(name);
    if (mark.name.is_valid()) {
      named_.insert(mark.name);
      if (!whole_of(graph_, node).is_valid()) take_over(node, mark.name);
    }
    marks_.is_saved[node] = true;
  }

  void take_over(NodeId node, StringId name) {
    NodeId& last = last_[name];
    if (last.is_valid()) marks_.is_saved[last] = false;
    last = node;
  }

  void find_names_of_backward() {
    for (const ErasedNode& erased : graph_.module().erased) {
      if (erased.is_mark) named_.insert(erased.name);  // for example, a node that became an input
    }
    for (const NodeId node : graph_.nodes()) {
      if (!graph_[node].is_call() || !phases_.is_backward(node)) continue;
      const Mark mark = read_mark(graph_, node);
      if (!mark.exists || !mark.name.is_valid() || named_.contains(mark.name)) continue;
      marks_.in_backward_alone = node;
      return;
    }
  }

  const Graph& graph_;
  const PhaseMap& phases_;
  MarkMap marks_;
  HashMap<StringId, NodeId> last_;
  HashSet<StringId> named_;
  HashSet<std::string> names_;  // two getitems of one part are one value
  int64_t total_ = 0, num_untaken_ = 0;
};

}  // namespace

Mark read_mark(const Graph& graph, NodeId node) {
  Mark mark;
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
    if (key == kAlso && value.has_children()) {
      for (const Arg& name : graph.pool().children(value)) {
        if (name.is(ArgKind::kString)) mark.also.push_back(name.as_string());
      }
    }
    if (key != kParts || !value.has_children()) continue;
    mark.has_parts = true;
    for (const Arg& part : graph.pool().children(value)) {
      if (part.is(ArgKind::kInt)) mark.parts.push_back(part.as_int());
    }
  }
  std::ranges::sort(mark.parts);
  return mark;
}

NodeId mark_carrier(const Graph& graph, NodeId node) {
  const std::optional<int64_t> part = part_number(graph, node);
  const NodeId whole = part.has_value() ? whole_of(graph, node) : NodeId();
  if (!whole.is_valid() || !graph[whole].is_call()) return node;
  const bool is_own = !names_part(read_mark(graph, whole), *part) && names_part(read_mark(graph, node), *part);
  return is_own ? node : whole;
}

bool is_marked_saved(const Graph& graph, NodeId node) {
  const std::optional<int64_t> part = part_number(graph, node);
  const Mark mark = read_mark(graph, mark_carrier(graph, node));
  return part.has_value() ? names_part(mark, *part) : mark.exists && !mark.has_parts;
}

std::vector<std::string> marked_names(const Graph& graph, NodeId node) {
  if (!is_marked_saved(graph, node)) return {};
  const NodeId carrier = mark_carrier(graph, node);
  return names_by(graph, node, carrier, read_mark(graph, carrier));
}

bool may_hold_marks(const Module& module) { return module.strings.find(kMark).is_valid(); }

bool holds_marks(const Graph& graph) {
  if (!may_hold_marks(graph.module())) return false;
  return std::ranges::any_of(graph.nodes(),
                             [&graph](NodeId node) { return graph[node].is_call() && read_mark(graph, node).exists; });
}

MarkMap find_marks(const Graph& graph, const PhaseMap& phases) {
  return may_hold_marks(graph.module()) ? MarkFinder(graph, phases).run() : MarkMap();
}

size_t mark_saved(Graph& graph, std::span<const NodeId> saved) {
  std::vector<NodeId> order;
  HashMap<NodeId, Mark> marks;
  size_t total = 0;
  for (const NodeId node : saved) {
    const ValueKind kind = graph.value(node).kind;
    if (!graph[node].is_call() || kind == ValueKind::kSymbolic || kind == ValueKind::kScalar) continue;
    const std::optional<int64_t> part = part_number(graph, node);
    const NodeId whole = part.has_value() ? whole_of(graph, node) : node;
    const NodeId marked = graph[whole].is_call() ? whole : node;
    const auto [place, is_new] = marks.try_emplace(marked, Mark());
    Mark& mark = place.value();
    if (is_new) {
      order.push_back(marked);
      mark = read_mark(graph, marked);
      // A mark of the whole call remains a mark of the whole call, and a recorded name is kept.
      mark.has_parts = marked != node && (!mark.exists || mark.has_parts);
      if (!mark.exists || !mark.name.is_valid()) mark.name = graph[marked].name;
      mark.exists = true;
    }
    if (marked != node && mark.has_parts && !has_part(mark, *part)) {
      add_part(graph, marked, mark, *part, {});
    }
    ++total;
  }
  size_t changed = 0;
  for (const NodeId node : order) {
    Mark& mark = marks[node];
    mark.total = static_cast<int64_t>(total);
    if (read_mark(graph, node) == mark) continue;
    write(graph, node, mark);
    ++changed;
  }
  return changed;
}

void add_mark(Graph& graph, NodeId node, std::span<const std::string> names, int64_t total) {
  if (names.empty()) return;
  const NodeId carrier = mark_carrier(graph, node);
  Mark mark = read_mark(graph, carrier);
  if (carrier != node) {
    add_part(graph, carrier, mark, *part_number(graph, node), {names.begin(), names.end()});
  } else {
    if (!mark.exists) mark.name = graph.module().intern(names.front());
    if (!mark.name.is_valid()) mark.name = graph[carrier].name;
    for (const std::string& name : names) add_also(graph, mark, name);
  }
  if (!mark.name.is_valid()) mark.name = graph[carrier].name;
  mark.exists = true;
  mark.total = std::max(mark.total, total);
  write(graph, carrier, mark);
}

void drop_mark(Graph& graph, NodeId node) {
  const NodeId carrier = mark_carrier(graph, node);
  Mark mark = read_mark(graph, carrier);
  if (!mark.exists) return;
  if (carrier != node) {
    if (!mark.has_parts) return;  // the mark of the call covers all parts
    const int64_t part = *part_number(graph, node);
    std::erase(mark.parts, part);
    std::erase_if(mark.also, [&](StringId name) {
      const std::string_view text = graph.module().text(name);
      return text.ends_with(named_as(part)) || text.ends_with(merged_into(part));
    });
  }
  mark.exists = carrier != node && !mark.parts.empty();
  write(graph, carrier, mark);
}

void set_mark_total(Graph& graph, NodeId node, int64_t total) {
  Mark mark = read_mark(graph, node);
  mark.total = total;
  write(graph, node, mark);
}

void strip_mark(Graph& graph, NodeId node) {
  if (graph.meta_entry(node, kCustom) != nullptr) write(graph, node, Mark());
}

void merge_marks(Graph& graph, NodeId kept, NodeId gone) {
  const Mark other = read_mark(graph, gone);
  if (!other.exists) return;
  Mark mark = read_mark(graph, kept);
  if (!mark.exists) {
    mark = other;
    mark.name = name_in(graph, gone, other);
    return write(graph, kept, mark);
  }
  if (!mark.name.is_valid()) mark.name = graph[kept].name;
  mark.total = std::max(mark.total, other.total);
  for (const int64_t part : other.parts) {
    add_part(graph, kept, mark, part, names_of_part(graph, gone, other, part));
  }
  if (!other.has_parts) {
    for (const std::string& name : names_by(graph, gone, gone, other)) add_also(graph, mark, name);
    mark.has_parts = false;
    mark.parts.clear();
  }
  write(graph, kept, mark);
}

}  // namespace fxopt
