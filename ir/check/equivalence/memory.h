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

// A tensor object as Python holds it. Two names of one object see each other's in-place changes.
struct NamedObject {
  uint32_t storage = 0;
  GeometryId geometry;
  uint32_t lineage = 0;  // 0 or kCutOff, as autograd sees it
};

struct NamedStorage {
  Hash128 content;           // excluding pieces
  Hash128 made;              // first content: names the creating call and its recorded value
  uint32_t pieces = 0;       // 1 + its place among the pieces; 0: none
  bool is_pending = false;   // a collective has yet to fill it
  bool is_transfer = false;  // pending: a copy between devices; a wait does not rename it
  bool is_listed = false;    // in the list of storages with readers
  uint32_t readers = 0;      // 1 + the latest of its entries in readers_; 0: none
  // Its tensor has the recorded sizes: those of an input, or those that the call's arguments
  // determine.
  bool is_sized = false;
  uint32_t holder = 0;      // a value named by a rule: 1 + the storage that really holds it
  bool is_renamed = false;  // the content has the name of another storage's, which may be larger
  Hash128 tie;              // names the first older storage that it may be; zero: none
  bool is_numbered = false;
  uint32_t number = 0;  // its place among numbered storages that one call made
};

// Objects and storages of a graph under symbolic execution, and their changes. Each is identified
// by the number that its creation returned. Numbers are dense. Expected O(1), or O(log pieces) for
// parts of a storage.
class NamedMemory {
 public:
  // `counts_writes`: autograd may run through the graph. It counts writes by storage, so a tensor
  // that it kept must not see any write, even to another part.
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
  static constexpr uint32_t kCutOff = 1;  // detached from the tensor that it is a view of

  NamedObject& object(uint32_t object) { return objects_[object]; }
  const NamedObject& object(uint32_t object) const { return objects_[object]; }
  NamedStorage& storage(uint32_t storage) { return storages_[storage]; }
  const NamedStorage& storage(uint32_t storage) const { return storages_[storage]; }
  NamedStorage& storage_of(uint32_t object) { return storages_[objects_[object].storage]; }
  const NamedStorage& storage_of(uint32_t object) const { return storages_[objects_[object].storage]; }
  size_t num_objects() const { return objects_.size(); }
  size_t num_storages() const { return storages_.size(); }
  // Returns the storage that really holds a value named by a rule. Returns any other storage
  // itself.
  uint32_t holder_of(uint32_t storage) const {
    const uint32_t real = storages_[storage].holder;
    return real == 0 ? storage : real - 1;
  }

  // -- observed state

  // Returns the content of a whole storage. seen_all_of() includes the state that a reader sees:
  // changes of possible aliases, and whether a collective is still filling it.
  Hash128 all_of(uint32_t storage) const;
  Hash128 seen_all_of(uint32_t storage) { return with_state(storage, all_of(storage)); }
  // Returns the content that a reader of the object sees, without its geometry.
  Hash128 data_key(uint32_t object);
  Hash128 geometry_key(uint32_t object);
  // Returns null if the geometry cannot be used in calculations. Valid until a geometry is added.
  const Geometry* known_geometry(uint32_t object) {
    return is_unsure(object) ? nullptr : geometries_.find(objects_[object].geometry);
  }
  std::optional<ByteRange> byte_range(uint32_t object);
  // Names the elements in row-major order, independent of their storage. Returns nothing if the
  // object is not row-major, if a copy to a tensor of `like`'s dtype, device and layout would
  // convert elements, or if autograd counts writes.
  std::optional<Hash128> elements_key(uint32_t object, const Geometry& like);
  static Hash128 elements_key(const Hash128& data, const Geometry& geometry);
  // If one write covers exactly the object's bytes, returns the written content; else nothing.
  std::optional<Hash128> exactly(uint32_t object);

  // -- possible aliases

  void join_objects(uint32_t a, uint32_t b) {
    object_groups_.join(a, b);
    join_storages(objects_[a].storage, objects_[b].storage);
  }
  // Joins two objects that already share a storage.
  void join_on_storage(uint32_t a, uint32_t b) { object_groups_.join(a, b); }
  void join_storages(uint32_t a, uint32_t b);
  // Names this storage's content like the content of another storage.
  void rename(uint32_t storage, const Hash128& content) {
    storages_[storage].content = content;
    storages_[storage].is_renamed = has_renamed_ = true;
  }
  // Sets the first and the current content of a new storage that has no readers yet. `made` also
  // stands for its size.
  void set_names(uint32_t storage, const Hash128& made, const Hash128& content) {
    storages_[storage].made = made;
    storages_[storage].content = content;
  }
  bool has_renamed() const { return has_renamed_; }
  // Names the real storage if it, or a possible alias of it, was renamed. Code that sees more than
  // elements needs this. Zero: the content suffices.
  Hash128 holder_key(uint32_t storage);
  // Whether two objects share a storage, or may.
  bool may_share(uint32_t a, uint32_t b);
  // Whether a possible alias has changed since: its sizes or its bytes.
  bool is_unsure(uint32_t object) { return object_groups_.changed_by_others(object) != Hash128(); }
  bool is_storage_unsure(uint32_t storage) { return storage_groups_.changed_by_others(storage) != Hash128(); }
  // True if no collective is filling the storage and no possible alias has changed since.
  bool is_certain(uint32_t storage) { return !storages_[storage].is_pending && !is_storage_unsure(storage); }
  uint32_t group_of(uint32_t object) { return object_groups_.group_of(object); }
  uint32_t storage_group_of(uint32_t storage) { return storage_groups_.group_of(storage); }

  // -- changes

  // Records a write of `call` through an object. `place` distinguishes several writes of one call.
  // The write covers the object's bytes or, if these are unknown, the whole storage. `copied`: the
  // name of the elements, if they are another tensor's.
  void write(uint32_t object, const Hash128& call, uint64_t place, const std::optional<Hash128>& copied = std::nullopt);
  void write_all(uint32_t storage, const Hash128& call, uint64_t place);
  // Names a part that has no readers yet.
  void put_piece(uint32_t storage, const ByteRange& reach, const Hash128& content);
  // Gives the whole storage one name.
  void settle(uint32_t storage, const Hash128& content);
  void change_geometry(uint32_t object, GeometryId geometry);
  // Moves the object to another storage (`set_`). Its possible aliases may or may not move with it.
  void move(uint32_t object, uint32_t storage, const Hash128& call);
  // A collective begins to fill the whole storage, or has filled it.
  void begin_filling(uint32_t storage);
  void end_filling(uint32_t storage, const Hash128& content);
  // A pending collective fills `filled` from `storage`. A write to `storage` before the wait makes
  // `filled` uncertain.
  void add_reader(uint32_t storage, uint32_t filled);

 private:
  Hash128 with_state(uint32_t storage, const Hash128& content);
  // Records a write while pending collectives may still read the written bytes.
  void race(uint32_t storage, const Hash128& write);
  void race_with_readers(uint32_t real, const Hash128& write);
  void note_change(uint32_t storage, const Hash128& content);

  GeometryTable& geometries_;
  const bool counts_writes_;
  std::vector<NamedObject> objects_;
  std::vector<NamedStorage> storages_;
  std::vector<Pieces> pieces_;
  std::vector<Hash128> lineages_ = {Hash128(), make_key(KeyKind::kLineage)};
  // A storage that a pending collective fills, linked to the previous one from the same source.
  struct Reader {
    uint32_t filled = 0, next = 0;
  };
  std::vector<Reader> readers_;
  std::vector<uint32_t> read_;                        // storages with readers
  HashMap<Hash128, uint32_t, Hash128Hash> num_tied_;  // by first content
  bool has_renamed_ = false;
  VersionedGroups object_groups_, storage_groups_;
};

}  // namespace fxopt
