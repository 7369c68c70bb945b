#include "cli/report/memory_diff.h"

#include <algorithm>
#include <array>
#include <map>

#include "cli/report/json.h"
#include "cli/report/table.h"

namespace fxopt {
namespace {

constexpr size_t kNobody = SIZE_MAX;
using Key = std::array<std::string, 5>;

Key by_node(const StorageRow& row) { return {row.node, row.label, row.kind, "", ""}; }
Key by_kind(const StorageRow& row) { return {row.module_path, row.target, row.label, row.kind, row.type}; }
Key by_place(const StorageRow& row) { return {row.module_path, row.target, row.label, row.kind, ""}; }

// Pairs rows without a partner whose keys agree, in their order.
void pair_up(std::span<const StorageRow> before, std::span<const StorageRow> after, Key (*key)(const StorageRow&),
             std::vector<size_t>& partner_of_before, std::vector<size_t>& partner_of_after) {
  std::map<Key, std::vector<size_t>> waiting;
  for (size_t i = before.size(); i-- > 0;) {
    if (partner_of_before[i] == kNobody) waiting[key(before[i])].push_back(i);
  }
  for (size_t i = 0; i < after.size(); ++i) {
    if (partner_of_after[i] != kNobody) continue;
    const auto found = waiting.find(key(after[i]));
    if (found == waiting.end() || found->second.empty()) continue;
    partner_of_after[i] = found->second.back();
    partner_of_before[found->second.back()] = i;
    found->second.pop_back();
  }
}

}  // namespace

std::vector<StorageChange> compare_storages(std::span<const StorageRow> before, std::span<const StorageRow> after) {
  std::vector<size_t> partner_of_before(before.size(), kNobody), partner_of_after(after.size(), kNobody);
  for (const auto& key : {by_node, by_kind, by_place}) {
    pair_up(before, after, key, partner_of_before, partner_of_after);
  }
  std::vector<StorageChange> changes;
  for (size_t i = 0; i < after.size(); ++i) {
    const size_t partner = partner_of_after[i];
    const int64_t bytes = partner == kNobody ? 0 : before[partner].bytes;
    if (bytes != after[i].bytes) changes.push_back({after[i], bytes, after[i].bytes});
  }
  for (size_t i = 0; i < before.size(); ++i) {
    if (partner_of_before[i] == kNobody) changes.push_back({before[i], before[i].bytes, 0});
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const StorageChange& a, const StorageChange& b) { return a.growth() > b.growth(); });
  return changes;
}

std::string change_text(const StorageChange& change) {
  const StorageRow& row = change.row;
  std::string text = "%" + printable_line(row.node) + " (" + printable_line(row.label.empty() ? row.type : row.label) +
                     ", " + row.kind;
  if (!row.module_path.empty()) text += ", " + printable_line(row.module_path);
  text += "): ";
  if (change.before == 0) return text + "new, " + bytes_text(change.after);
  if (change.after == 0) return text + "gone, " + bytes_text(change.before);
  return text + bytes_text(change.before) + " -> " + bytes_text(change.after);
}

}  // namespace fxopt
