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
  // Hash that identifies the content of the bytes that no piece covers. A piece is a byte range
  // with its own hash (contents.h).
  Hash128 content;
  Hash128 made;             // hash that identifies the creating call; normally the hash of the initial content
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
  // Some rewrite rules put a value into a new storage that exists only in the prover. At run time,
  // another storage contains the value. `holder` of the new storage is then 1 + the index of that
  // other storage in NamedMemory::storages_. For all storages without such a rule, `holder` is 0.
  uint32_t holder = 0;
  // True if NamedMemory::rename() was called for this storage. rename() replaces `content` by the
  // hash of data in another storage. The other storage may be larger.
  bool is_renamed = false;
  // A hash that identifies an older storage that may be the same storage as this storage. If
  // several older storages qualify, the hash identifies the older storage that join_storages()
  // recorded first. Zero if join_storages() recorded none.
  Hash128 tie;
  // True if `number` is set. join_storages() sets the number when it records that a newer storage
  // may be the same storage as this one.
  bool is_numbered = false;
  // Distinguishes storages that have the same `made`, for example because equal calls created these
  // storages. join_storages() numbers a storage when it first joins this storage with a newer
  // storage. The first numbered storage with the same `made` gets the number 0, the second gets 1,
  // and so on.
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
  // If a rewrite rule created `storage`, this storage exists only in the prover. In that case,
  // returns the storage that contains the same value at run time (see NamedStorage::holder). If no
  // rewrite rule created `storage`, returns `storage`.
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
  // - The object's geometry is unknown or not row-major.
  // - A copy to a tensor with `like`'s dtype, device and layout would convert elements.
  // - Autograd may run through the graph (`counts_writes` of the constructor is true).
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
  // Sets the fields `made` and `content` of a new storage (see NamedStorage). No pending collective
  // may read the storage yet. `made` also determines the size of the storage.
  void set_names(uint32_t storage, const Hash128& made, const Hash128& content) {
    storages_[storage].made = made;
    storages_[storage].content = content;
  }
  bool has_renamed() const { return has_renamed_; }
  // rename() can give two different storages the same hash of the content. If rename() was called
  // for `storage` or for a possible alias of `storage`, holder_key() returns a hash of these calls:
  // - the call that created `storage`;
  // - for each possible alias for which rename() was called: the call that created this alias.
  // If rename() was called for none of these storages, holder_key() returns zero. Some calls depend
  // on the storages of their arguments (CallRule::sees_storage). The value number of these calls
  // must contain the returned hash.
  Hash128 holder_key(uint32_t storage);
  // Whether two objects share a storage or may share one.
  bool may_share(uint32_t a, uint32_t b);
  // is_unsure() returns true if the geometry or the storage of `object` is uncertain. This is the
  // case if a call gave a possible alias another geometry or storage, and no later call changed
  // `object` itself.
  //
  // is_storage_unsure() returns true if the content of `storage` is uncertain. This is the case if
  // a call changed the content of a possible alias, and no later call changed `storage` itself.
  bool is_unsure(uint32_t object) { return object_groups_.changed_by_others(object) != Hash128(); }
  bool is_storage_unsure(uint32_t storage) { return storage_groups_.changed_by_others(storage) != Hash128(); }
  // Whether the content of `storage` is certain. Returns true if both conditions hold:
  // - No collective or copy between devices is still filling the storage.
  // - is_storage_unsure() returns false.
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
  // Sets the hash of the content of the bytes `reach`. Unlike write(), put_piece() does not handle
  // pending collectives that read these bytes. The caller must handle them, or ensure that no such
  // collective exists.
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
  // Must be called for each write to `storage`. `write` is a hash that identifies the write. A
  // pending collective or copy may still read `storage` or a possible alias of `storage`. The write
  // makes the result of this collective or copy uncertain. race() therefore adds `write` to the
  // hash of the storage that the collective or copy fills.
  void race(uint32_t storage, const Hash128& write);
  void race_with_readers(uint32_t real, const Hash128& write);
  void note_change(uint32_t storage, const Hash128& content);

  GeometryTable& geometries_;
  const bool counts_writes_;
  std::vector<NamedObject> objects_;
  std::vector<NamedStorage> storages_;
  std::vector<Pieces> pieces_;
  std::vector<Hash128> lineages_ = {Hash128(), make_key(KeyKind::kLineage)};
  // A pending collective or copy that reads a storage and fills the storage `filled`. The readers
  // of one storage are a linked list, and the latest reader comes first. `next` is 1 + the index in
  // readers_ of the next list entry, or 0 at the end of the list.
  struct Reader {
    uint32_t filled = 0, next = 0;
  };
  std::vector<Reader> readers_;
  std::vector<uint32_t> read_;  // the storages that have readers
  // The key is a NamedStorage::made. The value is the number of storages that have this `made`, and
  // for which NamedStorage::is_numbered is true. The next numbered storage with this `made` gets
  // the value as its NamedStorage::number.
  HashMap<Hash128, uint32_t, Hash128Hash> num_tied_;
  bool has_renamed_ = false;
  VersionedGroups object_groups_, storage_groups_;
};

}  // namespace fxopt
