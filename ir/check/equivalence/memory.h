#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/hash.h"
#include "core/hash_table.h"
#include "ir/check/equivalence/contents.h"
#include "ir/check/equivalence/groups.h"
#include "ir/check/equivalence/keys.h"

namespace fxopt {

// A tensor object as Python represents it. If two variables refer to one object, an in-place change
// through one variable is visible through the other variable.
struct NamedObject {
  uint32_t storage = 0;
  GeometryId geometry;
  uint32_t lineage = 0;  // kCutOff if autograd sees the object as detached, else 0
};

struct NamedStorage {
  Hash128 content;          // hash of the content of bytes outside of all pieces
  Hash128 made;             // hash of the first content; identifies the creating call
  uint32_t pieces = 0;      // 1 + the index in NamedMemory::pieces_, or 0 without pieces
  bool is_pending = false;  // a collective has not filled the storage yet
  // True if the pending operation is a copy between devices. For such a copy, a wait does not
  // change the hash of the storage's content.
  bool is_transfer = false;
  bool is_listed = false;  // whether NamedMemory::read_ contains the storage
  uint32_t readers = 0;    // 1 + the index of the storage's latest entry in NamedMemory::readers_, or 0 if there is
                           // none
  // Whether the sizes of the storage's tensor are certain. True if the tensor is an input, or if
  // the arguments of the creating call determine the sizes.
  bool is_sized = false;
  // Normally 0. Some rewrite rules give a value a storage of its own in the prover. `holder` is
  // then 1 + the number of the storage that contains the value at run time.
  uint32_t holder = 0;
  // Whether rename() set the hash of the content to the hash of another storage's content. The
  // other storage may be larger.
  bool is_renamed = false;
  // A hash that identifies the first older storage that may be the same storage. Zero if no such
  // storage exists.
  Hash128 tie;
  // True if a newer storage may be the same storage as this one. Only storages with this flag have
  // a number.
  bool is_numbered = false;
  // The count of storages with the same `made` that were numbered before this storage.
  uint32_t number = 0;
};

// The tensor objects and storages of a graph under symbolic execution (execution.h), and their
// changes. Each object and each storage is identified by the number that its creation returned.
// Numbers are dense. Expected time O(1), or O(log pieces) for parts of a storage.
class NamedMemory {
 public:
  // `counts_writes` is true if autograd may run through the graph. Autograd counts the writes to
  // each storage. If autograd kept a tensor, a write to any part of the tensor's storage is
  // therefore an error.
  NamedMemory(GeometryTable& geometries, bool counts_writes) : geometries_(geometries), counts_writes_(counts_writes) {}

  void reserve(size_t count) {
    objects_.reserve(count);
    storages_.reserve(count);
  }
  uint32_t make_storage(const Hash128& content);
  uint32_t make_object(uint32_t storage, GeometryId geometry, uint32_t lineage = 0) {
    objects_.push_back({storage, geometry, lineage});
    return static_cast<uint32_t>(objects_.size() - 1);
  }
  static constexpr uint32_t kCutOff = 1;  // the tensor is detached from its base

  NamedObject& object(uint32_t object) { return objects_[object]; }
  const NamedObject& object(uint32_t object) const { return objects_[object]; }
  NamedStorage& storage(uint32_t storage) { return storages_[storage]; }
  const NamedStorage& storage(uint32_t storage) const { return storages_[storage]; }
  NamedStorage& storage_of(uint32_t object) { return storages_[objects_[object].storage]; }
  const NamedStorage& storage_of(uint32_t object) const { return storages_[objects_[object].storage]; }
  size_t num_objects() const { return objects_.size(); }
  size_t num_storages() const { return storages_.size(); }
  // Returns the storage that contains the value of `storage` at run time. The two differ only if a
  // rewrite rule gave the value a new storage, see NamedStorage::holder.
  uint32_t holder_of(uint32_t storage) const {
    const uint32_t real = storages_[storage].holder;
    return real == 0 ? storage : real - 1;
  }

  // -- observed state

  // all_of() returns the hash of the content of a whole storage. The hash of seen_all_of() also
  // depends on changes of possible aliases, and on whether a collective is still filling the
  // storage.
  Hash128 all_of(uint32_t storage) const;
  Hash128 seen_all_of(uint32_t storage) { return with_state(storage, all_of(storage)); }
  // Returns a hash that identifies the data that a reader of the object sees. The hash is computed
  // from the calls that wrote the data. It does not contain the object's sizes and strides, which
  // geometry_key() represents.
  Hash128 data_key(uint32_t object);
  Hash128 geometry_key(uint32_t object);
  // Returns null if the geometry cannot be used in calculations. The pointer is valid until a
  // geometry is added.
  const Geometry* known_geometry(uint32_t object) {
    return is_unsure(object) ? nullptr : geometries_.find(objects_[object].geometry);
  }
  std::optional<ByteRange> byte_range(uint32_t object);
  // Returns a hash that identifies the elements in row-major order, independent of their storage.
  // Returns nothing in these cases:
  // - The object is not row-major.
  // - A copy to a tensor with `like`'s dtype, device and layout would convert elements.
  // - Autograd counts writes.
  std::optional<Hash128> elements_key(uint32_t object, const Geometry& like);
  static Hash128 elements_key(const Hash128& data, const Geometry& geometry);
  // If one piece covers exactly the bytes of the object, returns the hash of its content. Otherwise
  // returns nothing.
  std::optional<Hash128> exactly(uint32_t object);

  // -- possible aliases

  void join_objects(uint32_t a, uint32_t b) {
    object_groups_.join(a, b);
    join_storages(objects_[a].storage, objects_[b].storage);
  }
  // Records that two objects may be the same object. Their storages must already be joined.
  void join_on_storage(uint32_t a, uint32_t b) { object_groups_.join(a, b); }
  void join_storages(uint32_t a, uint32_t b);
  // Records that `storage` contains the same data as another storage. `content` is the hash of the
  // other storage's content.
  void rename(uint32_t storage, const Hash128& content) {
    storages_[storage].content = content;
    storages_[storage].is_renamed = has_renamed_ = true;
  }
  // Sets the hashes of the first and of the current content of a new storage that has no readers
  // yet. `made` also determines the size of the storage.
  void set_names(uint32_t storage, const Hash128& made, const Hash128& content) {
    storages_[storage].made = made;
    storages_[storage].content = content;
  }
  bool has_renamed() const { return has_renamed_; }
  // Returns a hash that identifies the storage itself if rename() was called for the storage or for
  // a possible alias. If a call depends on the storages of its arguments (CallRule::sees_storage),
  // the value number of the call must contain this hash. Returns zero if the hash of the content is
  // enough.
  Hash128 holder_key(uint32_t storage);
  // Whether two objects share a storage or may share one.
  bool may_share(uint32_t a, uint32_t b);
  // Whether a possible alias of the object or storage has changed since the object or storage
  // itself last changed.
  bool is_unsure(uint32_t object) { return object_groups_.changed_by_others(object) != Hash128(); }
  bool is_storage_unsure(uint32_t storage) { return storage_groups_.changed_by_others(storage) != Hash128(); }
  // Whether the content is certain: no collective is filling the storage, and no possible alias has
  // changed since the storage last changed.
  bool is_certain(uint32_t storage) { return !storages_[storage].is_pending && !is_storage_unsure(storage); }
  uint32_t group_of(uint32_t object) { return object_groups_.group_of(object); }
  uint32_t storage_group_of(uint32_t storage) { return storage_groups_.group_of(storage); }

  // -- changes

  // Records a write through an object. `call` is the value number (hash) of the writing call.
  // `place` distinguishes several writes of one call. The write covers the object's bytes. If the
  // bytes are unknown, the write covers the whole storage. If the written elements are copied from
  // another tensor, `copied` is the hash of these elements.
  void write(uint32_t object, const Hash128& call, uint64_t place, const std::optional<Hash128>& copied = std::nullopt);
  void write_all(uint32_t storage, const Hash128& call, uint64_t place);
  // Sets the hash of the content of the bytes `reach`, which no pending collective reads.
  void put_piece(uint32_t storage, const ByteRange& reach, const Hash128& content);
  // Sets the hash of the content of the whole storage, and discards all pieces.
  void settle(uint32_t storage, const Hash128& content);
  void change_geometry(uint32_t object, GeometryId geometry);
  // Moves the object to another storage (`set_`). Afterwards it is unknown whether the object's
  // possible aliases have also moved.
  void move(uint32_t object, uint32_t storage, const Hash128& call);
  // begin_filling() records that a collective starts to fill the whole storage. end_filling()
  // records that the collective has filled the storage.
  void begin_filling(uint32_t storage);
  void end_filling(uint32_t storage, const Hash128& content);
  // Records that a pending collective fills `filled` from `storage`. A write to `storage` before
  // the wait makes the content of `filled` uncertain.
  void add_reader(uint32_t storage, uint32_t filled);

 private:
  Hash128 with_state(uint32_t storage, const Hash128& content);
  // Records a write at a time when pending collectives may still read the written bytes. `write` is
  // a hash that identifies the write.
  void race(uint32_t storage, const Hash128& write);
  void race_with_readers(uint32_t real, const Hash128& write);
  void note_change(uint32_t storage, const Hash128& content);

  GeometryTable& geometries_;
  const bool counts_writes_;
  std::vector<NamedObject> objects_;
  std::vector<NamedStorage> storages_;
  std::vector<Pieces> pieces_;
  std::vector<Hash128> lineages_ = {Hash128(), make_key(KeyKind::kLineage)};
  // A storage that a pending collective fills. `next` links to the previous storage that is filled
  // from the same source.
  struct Reader {
    uint32_t filled = 0, next = 0;
  };
  std::vector<Reader> readers_;
  std::vector<uint32_t> read_;                        // the storages that have readers
  HashMap<Hash128, uint32_t, Hash128Hash> num_tied_;  // number of storages, by first content
  bool has_renamed_ = false;
  VersionedGroups object_groups_, storage_groups_;
};

}  // namespace fxopt
