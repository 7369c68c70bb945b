#include "ir/check/equivalence/memory.h"

#include <algorithm>
#include <utility>

namespace fxopt {
namespace {

Hash128 write_key(const Hash128& call, uint64_t place) { return make_key(KeyKind::kWrite, call, place); }

}  // namespace

uint32_t NamedMemory::make_storage(const Hash128& content) {
  NamedStorage storage;
  storage.content = storage.made = content;
  storages_.push_back(storage);
  return static_cast<uint32_t>(storages_.size() - 1);
}

Hash128 NamedMemory::all_of(uint32_t storage) const {
  const NamedStorage& item = storages_[storage];
  return item.pieces == 0 ? item.content : pieces_[item.pieces - 1].all(item.content);
}

Hash128 NamedMemory::with_state(uint32_t storage, const Hash128& content) {
  const bool is_pending = storages_[storage].is_pending;
  const Hash128 version = storage_groups_.changed_by_others(storage);
  if (version == Hash128() && !is_pending) return content;
  return make_key(KeyKind::kData, content, version, is_pending);
}

Hash128 NamedMemory::data_key(uint32_t object) {
  const uint32_t storage = objects_[object].storage;
  const NamedStorage& item = storages_[storage];
  if (item.pieces == 0) return with_state(storage, item.content);
  const std::optional<ByteRange> part = byte_range(object);
  return part.has_value() ? with_state(storage, pieces_[item.pieces - 1].seen(*part, item.content))
                          : seen_all_of(storage);
}

Hash128 NamedMemory::geometry_key(uint32_t object) {
  const Hash128 key = geometries_.key(objects_[object].geometry);
  const Hash128 version = object_groups_.changed_by_others(object);
  const Hash128 lineage = lineages_[objects_[object].lineage];
  if (version == Hash128() && lineage == Hash128()) return key;
  return make_key(KeyKind::kGeometry, key, version, lineage);
}

std::optional<ByteRange> NamedMemory::byte_range(uint32_t object) {
  const Geometry* geometry = known_geometry(object);
  return geometry == nullptr ? std::nullopt : byte_range_of(*geometry);
}

std::optional<Hash128> NamedMemory::elements_key(uint32_t object, const Geometry& like) {
  const Geometry* geometry = known_geometry(object);
  if (geometry == nullptr || counts_writes_) return std::nullopt;
  if (geometry->dtype != like.dtype || geometry->rest != like.rest || geometry->conjugate != like.conjugate ||
      geometry->negative != like.negative || !is_row_major(*geometry)) {
    return std::nullopt;
  }
  return elements_key(data_key(object), *geometry);
}
Hash128 NamedMemory::elements_key(const Hash128& data, const Geometry& geometry) {
  const Hash128 count = geometry.num_elements().key();
  const Hash128 offset = geometry.offset.key();
  return make_key(KeyKind::kElements, data, geometry.dtype, count, offset);
}

std::optional<Hash128> NamedMemory::exactly(uint32_t object) {
  const uint32_t pieces = storage_of(object).pieces;
  const std::optional<ByteRange> part = pieces == 0 ? std::nullopt : byte_range(object);
  return part.has_value() ? pieces_[pieces - 1].exactly(*part) : std::nullopt;
}

void NamedMemory::write(uint32_t object, const Hash128& call, uint64_t place, const std::optional<Hash128>& copied) {
  const uint32_t storage = objects_[object].storage;
  const std::optional<ByteRange> part = counts_writes_ ? std::nullopt : byte_range(object);
  if (!part.has_value()) return write_all(storage, call, place);
  if (is_storage_unsure(storage)) settle(storage, seen_all_of(storage));
  const Hash128 write = write_key(call, place);
  race(storage, write);
  put_piece(storage, *part, copied.value_or(write));
  note_change(storage, copied.value_or(write));
}

void NamedMemory::write_all(uint32_t storage, const Hash128& call, uint64_t place) {
  const Hash128 old = all_of(storage);
  const Hash128 content = write_key(call, place);
  race(storage, content);
  // The hash of the call does not contain all pieces, so the new hash contains their old content.
  settle(storage, storages_[storage].pieces == 0 ? content : make_key(KeyKind::kWrite, content, old));
  note_change(storage, storages_[storage].content);
}

// Records the change for possible aliases. The hash of the change identifies the storage by its
// creating call and by the storages that it may be.
void NamedMemory::note_change(uint32_t storage, const Hash128& content) {
  if (storage_groups_.group_of(storage) == 0) return;
  const NamedStorage& item = storages_[storage];
  storage_groups_.change(storage, make_key(KeyKind::kMayWrite, content, item.made, item.number, item.tie));
}

void NamedMemory::put_piece(uint32_t storage, const ByteRange& reach, const Hash128& content) {
  NamedStorage& item = storages_[storage];
  if (item.pieces == 0) {
    pieces_.emplace_back();
    item.pieces = static_cast<uint32_t>(pieces_.size());
  }
  pieces_[item.pieces - 1].write(reach, content);
}

void NamedMemory::settle(uint32_t storage, const Hash128& content) {
  storages_[storage].content = content;
  storages_[storage].pieces = 0;
}

void NamedMemory::change_geometry(uint32_t object, GeometryId geometry) {
  if (objects_[object].geometry == geometry && !is_unsure(object)) return;
  objects_[object].geometry = geometry;
  object_groups_.change(object, geometries_.exact_key(geometry));
}

void NamedMemory::move(uint32_t object, uint32_t storage, const Hash128& call) {
  join_storages(objects_[object].storage, storage);
  objects_[object].storage = storage;
  object_groups_.change(object, call);
}

void NamedMemory::add_reader(uint32_t storage, uint32_t filled) {
  const uint32_t real = holder_of(storage);
  if (!std::exchange(storages_[real].is_listed, true)) read_.push_back(real);
  readers_.push_back({filled, storages_[real].readers});
  storages_[real].readers = static_cast<uint32_t>(readers_.size());
}

void NamedMemory::join_storages(uint32_t a, uint32_t b) {
  if (a == b) return;
  // One call may create several storages. They are numbered in the order in which they first get a
  // possible alias.
  NamedStorage& older = storages_[std::min(a, b)];
  if (!std::exchange(older.is_numbered, true)) older.number = num_tied_[older.made]++;
  NamedStorage& newer = storages_[std::max(a, b)];
  if (newer.tie == Hash128()) {
    newer.tie = make_key(KeyKind::kMayWrite, older.made, older.number);
  }
  storage_groups_.join(a, b);
  for (const uint32_t each : {a, b}) {
    if (storages_[each].is_renamed) storage_groups_.mark(each, storages_[each].made);
    // The storages may be the same, so filling one changes the other.
    if (storages_[each].is_pending) storage_groups_.change(each, all_of(each));
  }
}

Hash128 NamedMemory::holder_key(uint32_t storage) {
  if (!has_renamed_) return Hash128();
  const Hash128 marks = storage_groups_.marks(storage);
  if (!storages_[storage].is_renamed && marks == Hash128()) return Hash128();
  const Hash128 made = storages_[storage].made;
  return make_key(KeyKind::kSide, made, marks);
}

bool NamedMemory::may_share(uint32_t a, uint32_t b) {
  const uint32_t first = objects_[a].storage, second = objects_[b].storage;
  if (holder_of(first) == holder_of(second)) return true;
  const uint32_t group = storage_groups_.group_of(first);
  return group != 0 && group == storage_groups_.group_of(second);
}

void NamedMemory::begin_filling(uint32_t storage) {
  storages_[storage].is_pending = true;
  storage_groups_.change(storage, all_of(storage));
}

void NamedMemory::end_filling(uint32_t storage, const Hash128& content) {
  settle(storage, content);
  storage_groups_.change(storage, content);
}

// Pending collectives may still read `real`. Makes the content of the storages that they fill
// uncertain. Drops readers that have finished.
void NamedMemory::race_with_readers(uint32_t real, const Hash128& write) {
  uint32_t* link = &storages_[real].readers;
  while (*link != 0) {
    Reader& reader = readers_[*link - 1];
    if (!storages_[reader.filled].is_pending) {
      *link = reader.next;
      continue;
    }
    const Hash128 old = all_of(reader.filled);
    settle(reader.filled, make_key(KeyKind::kPending, old, write));
    storage_groups_.change(reader.filled, storages_[reader.filled].content);
    link = &reader.next;
  }
}

void NamedMemory::race(uint32_t storage, const Hash128& write) {
  const uint32_t real = holder_of(storage);
  race_with_readers(real, write);
  const uint32_t group = storage_groups_.group_of(storage);
  if (group == 0) return;
  // Collectives may also read a possible alias of the storage.
  std::erase_if(read_, [this](uint32_t other) {
    NamedStorage& item = storages_[other];
    item.is_listed = item.readers != 0;
    return !item.is_listed;
  });
  for (const uint32_t other : read_) {
    if (other != real && storage_groups_.group_of(other) == group) race_with_readers(other, write);
  }
}

}  // namespace fxopt
