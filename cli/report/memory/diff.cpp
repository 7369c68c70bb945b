#include "cli/report/memory/diff.h"

#include <algorithm>

#include "cli/print/table.h"
#include "core/bytes.h"
#include "core/hash.h"
#include "core/hash_table.h"

namespace fxopt {
namespace {

constexpr uint32_t kNobody = UINT32_MAX;

// A key that pairs storages. Tracers number nodes, so one more node renames all later
// nodes. The properties of a node are therefore more reliable than its name. An invalid id means
// that a key ignores this text.
struct Key {
  StringId node, module_path, target, label, type;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  size_t operator()(const Key& key) const {
    uint64_t hash = hash_combine(key.node.index(), key.module_path.index());
    hash = hash_combine(hash, key.target.index());
    hash = hash_combine(hash, key.label.index());
    return hash_combine(hash, key.type.index());
  }
};
Key by_all(const StorageEntry& row) { return {row.node, row.module_path, row.target, row.label, row.type}; }
Key by_kind(const StorageEntry& row) { return {{}, row.module_path, row.target, row.label, row.type}; }
Key by_place(const StorageEntry& row) { return {{}, row.module_path, row.target, row.label, {}}; }
Key by_node(const StorageEntry& row) { return {row.node, {}, {}, row.label, {}}; }

using Rows = std::vector<const StorageEntry*>;

Rows rows_of(const StorageTable& table) {
  Rows rows;
  rows.reserve(table.entries.size());
  for (const StorageEntry& row : table.entries) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const StorageEntry* a, const StorageEntry* b) { return a->first_place < b->first_place; });
  return rows;
}

bool is_live(const StorageEntry& row, uint32_t place) { return row.first_place <= place && place <= row.last_place; }

// Returns the place where the node of `peak` allocates memory, or `otherwise` if it allocates none.
// Memory kept between steps has the same node but begins earlier, so the last beginning is used.
uint32_t place_of(const StorageTable& table, const Rows& rows, const PeakRow& peak, uint32_t otherwise) {
  const StringId node = table.texts->find(peak.node);
  uint32_t place = 0;
  bool is_found = false;
  for (const StorageEntry* row : rows) {
    if (!node.is_valid() || row->node != node) continue;
    place = std::max(place, row->first_place);
    is_found = true;
  }
  return is_found ? place : otherwise;
}

// Two lists of storages, and the pairs of matching storages.
class Pairs {
 public:
  Pairs(const StorageTable& earlier, const StorageTable& later)
      : before(rows_of(earlier)),
        after(rows_of(later)),
        of_before(before.size(), kNobody),
        of_after(after.size(), kNobody),
        earlier_(*earlier.texts),
        later_(*later.texts) {
    for (const auto& key : {by_all, by_kind, by_place, by_node}) pair_up(key);
  }

  Rows before, after;  // in schedule order
  std::vector<uint32_t> of_before, of_after;

  // Returns the last storage of `after` that begins at `place` or before and has a partner. Returns
  // kNobody if there is none.
  uint32_t anchor(uint32_t place) const {
    for (size_t i = after.size(); i-- > 0;) {
      if (after[i]->first_place <= place && of_after[i] != kNobody) return static_cast<uint32_t>(i);
    }
    return kNobody;
  }

 private:
  // Pairs each unpaired storage of `after` with the first unpaired storage of `before` that has an
  // equal key.
  void pair_up(Key (*key)(const StorageEntry&)) {
    HashMap<Key, uint32_t, KeyHash> first;               // looked up, never iterated
    std::vector<uint32_t> next(before.size(), kNobody);  // the next row with an equal key
    for (size_t i = before.size(); i-- > 0;) {
      if (of_before[i] != kNobody) continue;
      uint32_t& head = first.try_emplace(key(*before[i]), kNobody).first.value();
      next[i] = head;
      head = static_cast<uint32_t>(i);
    }
    if (first.empty()) return;
    for (size_t i = 0; i < after.size(); ++i) {
      if (of_after[i] != kNobody) continue;
      const auto found = first.find(in_earlier(key(*after[i])));
      if (found == first.end() || found->second == kNobody) continue;
      const uint32_t partner = found->second;
      of_after[i] = partner;
      of_before[partner] = static_cast<uint32_t>(i);
      found.value() = next[partner];
    }
  }

  // Converts a key of the later side to ids of the earlier side. A text unknown to the earlier side
  // gets an id that no key has.
  Key in_earlier(Key key) {
    for (StringId* text : {&key.node, &key.module_path, &key.target, &key.label, &key.type}) {
      if (!text->is_valid() || &earlier_ == &later_) continue;
      StringId& known = ids_[*text];
      if (!known.is_valid()) known = earlier_.find(later_[*text]);
      if (!known.is_valid()) known = StringId(earlier_.size());
      *text = known;
    }
    return key;
  }

  const Interner& earlier_;
  const Interner& later_;
  IdMap<StringId, StringId> ids_;  // from an id of the later side to an id of the earlier side
};

void add_changes(const StorageTable& earlier, const StorageTable& later, const Pairs& pairs, uint32_t place_before,
                 uint32_t place_after, LiveSetChange& result) {
  for (size_t i = 0; i < pairs.after.size(); ++i) {
    const StorageEntry& row = *pairs.after[i];
    if (!is_live(row, place_after)) continue;
    const StorageEntry* partner = pairs.of_after[i] == kNobody ? nullptr : pairs.before[pairs.of_after[i]];
    const bool was_live = partner != nullptr && is_live(*partner, place_before);
    if (was_live && partner->bytes == row.bytes) continue;
    StorageChange change{&later, &row, was_live ? partner->bytes : 0, row.bytes, nullptr, nullptr};
    if (partner != nullptr && !was_live) {
      change.was_in = &earlier;
      change.was = partner;
    }
    result.changes.push_back(change);
  }
  for (size_t i = 0; i < pairs.before.size(); ++i) {
    const StorageEntry& row = *pairs.before[i];
    const uint32_t partner = pairs.of_before[i];
    const bool is_here = partner != kNobody && is_live(*pairs.after[partner], place_after);
    if (is_live(row, place_before) && !is_here)
      result.changes.push_back({&earlier, &row, row.bytes, 0, nullptr, nullptr});
  }
}

std::string lifetime_text(const StorageRow& row) {
  return "%" + printable_line(row.first) + " to %" + printable_line(row.last);
}

}  // namespace

LiveSetChange compare_live_sets(const DeviceMemory& before, const PeakRow& peak_before, const DeviceMemory& after,
                                const PeakRow& peak_after) {
  // one side lists no storage
  if (before.storages.texts == nullptr || after.storages.texts == nullptr) return {};
  const Pairs pairs(before.storages, after.storages);
  const uint32_t place_after = place_of(after.storages, pairs.after, peak_after, after.position);
  const uint32_t peak_place = place_of(before.storages, pairs.before, peak_before, before.position);
  const uint32_t anchor = pairs.anchor(place_after);
  const uint32_t place_of_anchor = anchor == kNobody ? 0 : pairs.before[pairs.of_after[anchor]]->first_place;
  const bool lists_all = before.storages.entries.size() > before.storages.live;
  const uint32_t place_before = lists_all ? place_of_anchor : before.position;
  LiveSetChange result;
  result.moved = anchor == kNobody || pairs.after[anchor]->first_place != place_after || place_of_anchor != peak_place;
  add_changes(before.storages, after.storages, pairs, place_before, place_after, result);
  std::stable_sort(result.changes.begin(), result.changes.end(),
                   [](const StorageChange& a, const StorageChange& b) { return a.growth() > b.growth(); });
  return result;
}

std::string change_text(const StorageChange& change) {
  const StorageRow row = change.row();
  std::string text = "%" + printable_line(row.node) + " (" + printable_line(row.label.empty() ? row.type : row.label) +
                     ", " + row.kind;
  if (!row.module_path.empty()) text += ", " + printable_line(row.module_path);
  text += "): ";
  if (change.was != nullptr) {
    return text + bytes_text(change.after) + ", live from " + lifetime_text(row) + ", before from " +
           lifetime_text(change.was_in->row(*change.was));
  }
  if (change.before == 0) return text + "new, " + bytes_text(change.after);
  if (change.after == 0) return text + "gone, " + bytes_text(change.before);
  return text + bytes_text(change.before) + " -> " + bytes_text(change.after);
}

}  // namespace fxopt
