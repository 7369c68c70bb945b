#include "cli/report/memory_diff.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "cli/report/json.h"
#include "cli/report/table.h"

namespace fxopt {
namespace {

constexpr size_t kNobody = SIZE_MAX;
using Key = std::array<std::string, 5>;

// Names of nodes are numbered through by tracers, so that one node more renames all behind it: a name alone counts for
// less than what a node is.
Key by_all(const StorageRow& row) { return {row.node, row.module_path, row.target, row.label, row.type}; }
Key by_kind(const StorageRow& row) { return {"", row.module_path, row.target, row.label, row.type}; }
Key by_place(const StorageRow& row) { return {"", row.module_path, row.target, row.label, ""}; }
Key by_node(const StorageRow& row) { return {row.node, "", "", row.label, ""}; }

using Rows = std::vector<const StorageRow*>;

Rows rows_of(const DeviceMemory& device) {
  Rows rows;
  for (const std::vector<StorageRow>* list : {&device.top, &device.others}) {
    for (const StorageRow& row : *list) rows.push_back(&row);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const StorageRow* a, const StorageRow* b) { return a->first_place < b->first_place; });
  return rows;
}

bool is_live(const StorageRow& row, uint32_t place) { return row.first_place <= place && place <= row.last_place; }

// Where a node takes memory. What lives between steps is listed with its node, too, but begins before it.
uint32_t place_of(const Rows& rows, const PeakRow& peak, uint32_t otherwise) {
  uint32_t place = 0;
  bool is_found = false;
  for (const StorageRow* row : rows) {
    if (row->node != peak.node) continue;
    place = std::max(place, row->first_place);
    is_found = true;
  }
  return is_found ? place : otherwise;
}

// Two lists of storages, and who is who.
struct Pairs {
  Rows before, after;  // in schedule order
  std::vector<size_t> of_before, of_after;

  Pairs(const DeviceMemory& earlier, const DeviceMemory& later)
      : before(rows_of(earlier)),
        after(rows_of(later)),
        of_before(before.size(), kNobody),
        of_after(after.size(), kNobody) {
    for (const auto& key : {by_all, by_kind, by_place, by_node}) pair_up(key);
  }

  void pair_up(Key (*key)(const StorageRow&)) {
    std::map<Key, std::vector<size_t>> waiting;
    for (size_t i = before.size(); i-- > 0;) {
      if (of_before[i] == kNobody) waiting[key(*before[i])].push_back(i);
    }
    for (size_t i = 0; i < after.size(); ++i) {
      if (of_after[i] != kNobody) continue;
      const auto found = waiting.find(key(*after[i]));
      if (found == waiting.end() || found->second.empty()) continue;
      of_after[i] = found->second.back();
      of_before[found->second.back()] = i;
      found->second.pop_back();
    }
  }

  // Of `after`: the last storage that begins at `place` or before it and has a partner; kNobody when there is none.
  size_t anchor(uint32_t place) const {
    for (size_t i = after.size(); i-- > 0;) {
      if (after[i]->first_place <= place && of_after[i] != kNobody) return i;
    }
    return kNobody;
  }
};

void add_changes(const Pairs& pairs, uint32_t place_before, uint32_t place_after, LiveSetChange& result) {
  for (size_t i = 0; i < pairs.after.size(); ++i) {
    const StorageRow& row = *pairs.after[i];
    if (!is_live(row, place_after)) continue;
    const StorageRow* partner = pairs.of_after[i] == kNobody ? nullptr : pairs.before[pairs.of_after[i]];
    const bool was_live = partner != nullptr && is_live(*partner, place_before);
    if (was_live && partner->bytes == row.bytes) continue;
    StorageChange change{row, was_live ? partner->bytes : 0, row.bytes, std::nullopt};
    if (partner != nullptr && !was_live) change.was = *partner;
    result.changes.push_back(std::move(change));
  }
  for (size_t i = 0; i < pairs.before.size(); ++i) {
    const StorageRow& row = *pairs.before[i];
    const size_t partner = pairs.of_before[i];
    const bool is_here = partner != kNobody && is_live(*pairs.after[partner], place_after);
    if (is_live(row, place_before) && !is_here) result.changes.push_back({row, row.bytes, 0, std::nullopt});
  }
}

std::string lifetime_text(const StorageRow& row) {
  return "%" + printable_line(row.first) + " to %" + printable_line(row.last);
}

}  // namespace

LiveSetChange compare_live_sets(const DeviceMemory& before, const PeakRow& peak_before, const DeviceMemory& after,
                                const PeakRow& peak_after) {
  const Pairs pairs(before, after);
  const uint32_t place_after = place_of(pairs.after, peak_after, after.position);
  const uint32_t peak_place = place_of(pairs.before, peak_before, before.position);
  const size_t anchor = pairs.anchor(place_after);
  const uint32_t place_of_anchor = anchor == kNobody ? 0 : pairs.before[pairs.of_after[anchor]]->first_place;
  const bool lists_all = !before.others.empty();
  const uint32_t place_before = lists_all ? place_of_anchor : before.position;
  LiveSetChange result;
  result.moved = anchor == kNobody || pairs.after[anchor]->first_place != place_after || place_of_anchor != peak_place;
  add_changes(pairs, place_before, place_after, result);
  std::stable_sort(result.changes.begin(), result.changes.end(),
                   [](const StorageChange& a, const StorageChange& b) { return a.growth() > b.growth(); });
  return result;
}

std::string change_text(const StorageChange& change) {
  const StorageRow& row = change.row;
  std::string text = "%" + printable_line(row.node) + " (" + printable_line(row.label.empty() ? row.type : row.label) +
                     ", " + row.kind;
  if (!row.module_path.empty()) text += ", " + printable_line(row.module_path);
  text += "): ";
  if (change.was.has_value()) {
    return text + bytes_text(change.after) + ", live from " + lifetime_text(row) + ", before from " +
           lifetime_text(*change.was);
  }
  if (change.before == 0) return text + "new, " + bytes_text(change.after);
  if (change.after == 0) return text + "gone, " + bytes_text(change.before);
  return text + bytes_text(change.before) + " -> " + bytes_text(change.after);
}

}  // namespace fxopt
