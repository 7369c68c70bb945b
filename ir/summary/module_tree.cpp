#include "ir/summary/module_tree.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/hash.h"
#include "core/saturate.h"
#include "core/text.h"

namespace fxopt {
namespace {

// Returns the number that a path component is, in Python's notation without leading zeros.
std::optional<int64_t> number_of(std::string_view name) {
  const bool is_plain = !name.empty() && name.front() >= '0' && name.front() <= '9';
  if (!is_plain || (name.size() > 1 && name.front() == '0')) return std::nullopt;
  return parse_int64(name);
}

// Returns "0..3, 5" for 0, 1, 2, 3, 5. The numbers must be sorted.
std::string ranges_text(const std::vector<int64_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += std::to_string(numbers[i]);
    if (last > i) text += (last == i + 1 ? ", " : "..") + std::to_string(numbers[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace

void StorageSum::add(const StorageSum& other) {
  storages += other.storages;
  bytes = saturating_add(bytes, other.bytes);
  unknown += other.unknown;
  by_hint += other.by_hint;
}

void ModuleFigures::add(const ModuleFigures& other) {
  nodes += other.nodes;
  for (size_t i = 0; i < kNumPhases; ++i) phases[i] += other.phases[i];
  parameters += other.parameters;
  elements = saturating_add(elements, other.elements);
  unknown_elements += other.unknown_elements;
  made.add(other.made);
}

size_t ModuleTree::place_of(std::string_view path) {
  uint32_t at = 0;
  size_t depth = 0;
  for (size_t begin = 0; begin <= path.size(); ++depth) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::pair<uint32_t, std::string_view> key(at, path.substr(begin, end - begin));
    const auto& [place, is_new] = index_.emplace(key, static_cast<uint32_t>(nodes_.size()));
    if (is_new) {
      nodes_[at].children.push_back(place->second);
      Item item;
      item.path = path.substr(0, end);
      item.parent = at;
      nodes_.push_back(std::move(item));
    }
    at = place->second;
    begin = end + 1;
  }
  depth_ = std::max(depth_, depth);
  return at;
}

void ModuleTree::add(size_t place, const ModuleFigures& figures, uint64_t kind) {
  Item& item = nodes_[place];
  item.figures.add(figures);
  item.signature += hash_combine(1, kind);  // a sum, so order does not matter
}

std::string_view ModuleTree::name_of(uint32_t item) const {
  const Item& child = nodes_[item];
  return child.parent == 0 ? child.path : child.path.substr(nodes_[child.parent].path.size() + 1);
}

void ModuleTree::finish() {
  for (size_t i = nodes_.size(); i-- > 1;) {
    Item& item = nodes_[i];
    item.signature = hash_combine(2, item.signature);
    Item& parent = nodes_[item.parent];
    parent.figures.add(item.figures);
    parent.signature += hash_combine(item.signature, hash_bytes(name_of(static_cast<uint32_t>(i))));
  }
}

// Groups the children of alike modules. Children with the same name in different parents are one
// group. Numbered children of a parent with the same signature are also in one group.
std::vector<ModuleTree::Members> ModuleTree::folded_children(const Members& parents) const {
  std::vector<Members> groups;
  std::map<uint64_t, size_t> numbered;  // signature -> group
  for (const uint32_t child : nodes_[parents.front()].children) {
    const std::string_view name = name_of(child);
    size_t group = groups.size();
    if (number_of(name).has_value()) group = numbered.emplace(nodes_[child].signature, group).first->second;
    if (group == groups.size()) groups.emplace_back();
    for (const uint32_t parent : parents) {
      const auto found = index_.find({parent, name});
      if (found != index_.end()) groups[group].push_back(found->second);
    }
  }
  std::ranges::stable_sort(groups, [this](const Members& a, const Members& b) {
    return nodes_[a.front()].figures.nodes * a.size() > nodes_[b.front()].figures.nodes * b.size();
  });
  return groups;
}

ModuleRow ModuleTree::row_of(const Members& members, size_t depth) const {
  ModuleRow row;
  row.path = nodes_[members.front()].path;
  row.name = name_of(members.front());
  row.depth = depth;
  row.alike = members.size();
  std::vector<int64_t> numbers;  // members that have the parent of the first member
  for (const uint32_t member : members) {
    row.figures.add(nodes_[member].figures);
    const bool is_sibling = nodes_[member].parent == nodes_[members.front()].parent;
    if (const std::optional<int64_t> number = number_of(name_of(member)); is_sibling && number.has_value()) {
      numbers.push_back(*number);
    }
  }
  std::ranges::sort(numbers);
  if (numbers.size() < 2) return row;
  row.siblings = numbers.size();
  row.name = ranges_text(numbers);
  return row;
}

std::vector<ModuleRow> ModuleTree::rows(size_t depth) const {
  std::vector<ModuleRow> rows;
  std::vector<std::pair<Members, size_t>> open;  // a stack: paths may be deep
  const auto push_children = [&](const Members& parents, size_t at) {
    std::vector<Members> groups = folded_children(parents);
    while (!groups.empty()) {
      open.emplace_back(std::move(groups.back()), at);
      groups.pop_back();
    }
  };
  if (depth > 0) push_children({0}, 1);
  while (!open.empty()) {
    const auto [members, at] = std::move(open.back());
    open.pop_back();
    rows.push_back(row_of(members, at));
    if (at < depth) push_children(members, at + 1);
  }
  return rows;
}

size_t ModuleTree::fitting_depth(size_t max_rows) const {
  std::vector<size_t> rows_at(depth_ + 1, 0);
  for (const ModuleRow& row : rows(depth_)) ++rows_at[row.depth];
  size_t depth = 1, count = depth_ > 0 ? rows_at[1] : 0;
  while (depth < depth_ && count + rows_at[depth + 1] <= max_rows) count += rows_at[++depth];
  return depth;
}

}  // namespace fxopt
