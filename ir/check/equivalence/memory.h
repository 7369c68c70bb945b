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

// A tensor object as Python represents it. If two names refer to one object, an in-place change
// through one name is visible through the other name.
struct NamedObject {
  uint32_t storage = 0;
  GeometryId geometry;
  uint32_t lineage = 0;  // kCutOff if autograd sees the object as detached, else 0
};

struct NamedStorage {
  Hash128 content;          // content without the pieces
  Hash128 made;             // first content; identifies the creating call and the recorded value
  uint32_t pieces = 0;      // 1 + the place in pieces_, or 0 without pieces
  bool is_pending = false;  // a collective has not filled the storage yet
  // True if the pending operation is a copy between devices. A wait does not rename the content of
  // this storage.
  bool is_transfer = false;
  bool is_listed = false;  // whether the storage is in the list read_
  uint32_t readers = 0;    // 1 + the place of the latest entry in readers_, or 0
  // Whether the sizes of the storage's tensor are certain. This is so if the tensor is an input, or
  // if the call's arguments determine the sizes.
  bool is_sized = false;
  // If a rewrite rule named the value, 1 + the number of the storage that really contains the
  // value. Otherwise 0.
  uint32_t holder = 0;
  // Whether the content has the same name as the content of another storage. The other storage may
  // be larger.
  bool is_renamed = false;
  // The name of the first older storage that may be the same storage, or zero if no such storage
  // exists.
  Hash128 tie;
  bool is_numbered = false;
  // Position among the numbered storages that one call created.
  uint32_t number = 0;
};

// The objects and storages of a graph under symbolic execution, and their changes. Each object and
// each storage is identified by the number that its creation returned. Numbers are dense. Expected
// time O(1), or O(log pieces) for parts of a storage.
class NamedMemory {
 public:
  // `counts_writes` is true if autograd may run through the graph. Autograd counts writes by
  // storage. If autograd kept a tensor, no part of the tensor's storage may therefore be written.
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
  // If a rewrite rule named the storage's value, returns the storage that really contains the
  // value. Otherwise returns `storage`.
  uint32_t holder_of(uint32_t storage) const {
    const uint32_t real = storages_[storage].holder;
    return real == 0 ? storage : real - 1;
  }

  // -- observed state

  // all_of() returns the content of a whole storage. seen_all_of() also includes the state that a
  // reader sees: changes of possible aliases, and whether a collective is still filling the
  // storage.
  Hash128 all_of(uint32_t storage) const;
  Hash128 seen_all_of(uint32_t storage) { return with_state(storage, all_of(storage)); }
  // Returns the content that a reader of the object sees, without the object's geometry.
  Hash128 data_key(uint32_t object);
  Hash128 geometry_key(uint32_t object);
  // Returns null if the geometry cannot be used in calculations. The pointer is valid until a
  // geometry is added.
  const Geometry* known_geometry(uint32_t object) {
    return is_unsure(object) ? nullptr : geometries_.find(objects_[object].geometry);
  }
  std::optional<ByteRange> byte_range(uint32_t object);
  // Returns a name for the elements in row-major order, independent of their storage. Returns
  // nothing in these cases:
  // - The object is not row-major.
  // - A copy to a tensor with `like`'s dtype, device and layout would convert elements.
  // - Autograd counts writes.
  std::optional<Hash128> elements_key(uint32_t object, const Geometry& like);
  static Hash128 elements_key(const Hash128& data, const Geometry& geometry);
  // If one write covers exactly the bytes of the object, returns the written content. Otherwise
  // returns nothing.
  std::optional<Hash128> exactly(uint32_t object);

  // -- possible aliases

  void join_objects(uint32_t a, uint32_t b) {
    object_groups_.join(a, b);
    join_storages(objects_[a].storage, objects_[b].storage);
  }
  // Joins two objects whose storages are already joined.
  void join_on_storage(uint32_t a, uint32_t b) { object_groups_.join(a, b); }
  void join_storages(uint32_t a, uint32_t b);
  // Gives this storage's content the name of another storage's content.
  void rename(uint32_t storage, const Hash128& content) {
    storages_[storage].content = content;
    storages_[storage].is_renamed = has_renamed_ = true;
  }
  // Sets the first and the current content of a new storage that has no readers yet. `made` also
  // determines the size of the storage.
  void set_names(uint32_t storage, const Hash128& made, const Hash128& content) {
    storages_[storage].made = made;
    storages_[storage].content = content;
  }
  bool has_renamed() const { return has_renamed_; }
  // Returns a name for the real storage if this storage or a possible alias was renamed. Code that
  // reads more of a tensor than its elements needs this name. Returns zero if the content is
  // enough.
  Hash128 holder_key(uint32_t storage);
  // Whether two objects share a storage or may share one.
  bool may_share(uint32_t a, uint32_t b);
  // Whether the sizes or bytes of a possible alias have changed since this object or storage last
  // changed.
  bool is_unsure(uint32_t object) { return object_groups_.changed_by_others(object) != Hash128(); }
  bool is_storage_unsure(uint32_t storage) { return storage_groups_.changed_by_others(storage) != Hash128(); }
  // Whether the content is certain: no collective is filling the storage, and no possible alias has
  // changed since the storage last changed.
  bool is_certain(uint32_t storage) { return !storages_[storage].is_pending && !is_storage_unsure(storage); }
  uint32_t group_of(uint32_t object) { return object_groups_.group_of(object); }
  uint32_t storage_group_of(uint32_t storage) { return storage_groups_.group_of(storage); }

  // -- changes

  // Records a write of `call` through an object. `place` distinguishes several writes of one call.
  // The write covers the object's bytes. If the bytes are unknown, the write covers the whole
  // storage. If the written elements are copied from another tensor, `copied` is the name of these
  // elements.
  void write(uint32_t object, const Hash128& call, uint64_t place, const std::optional<Hash128>& copied = std::nullopt);
  void write_all(uint32_t storage, const Hash128& call, uint64_t place);
  // Gives a name to the content of a part that has no readers yet.
  void put_piece(uint32_t storage, const ByteRange& reach, const Hash128& content);
  // Gives the content of the whole storage one name.
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
  // Records a write at a time when pending collectives may still read the written bytes.
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
  HashMap<Hash128, uint32_t, Hash128Hash> num_tied_;  // number of storages for each first content
  bool has_renamed_ = false;
  VersionedGroups object_groups_, storage_groups_;
};

}  // namespace fxopt
