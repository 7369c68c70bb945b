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

// A tensor object, as Python holds it: two names of one object see each other's changes in place.
struct NamedObject {
  uint32_t storage = 0;
  GeometryId geometry;
  uint32_t lineage = 0;  // what autograd would see on the way here; 0: nothing, else kCutOff
};

struct NamedStorage {
  Hash128 content;           // of what no piece covers
  Hash128 made;              // what it held first: names the call that made it, and what is recorded of that
  uint32_t pieces = 0;       // 1 + its place among the pieces; 0: there are none
  bool is_pending = false;   // a collective has yet to fill it
  bool is_transfer = false;  // pending: a copy between devices, which is what it copies
  bool is_listed = false;    // among those that have readers
  uint32_t readers = 0;      // 1 + the last of those that pending collectives fill from it; 0: there are none
  // Its tensor has the sizes that are recorded: an input's, or what a call of these arguments makes.
  bool is_sized = false;
  uint32_t stands_on = 0;   // of a value named by a law: 1 + the storage that it lies on in truth
  bool is_renamed = false;  // what it holds has another's name, whose storage may be larger
  Hash128 tie;              // names the first older one that it may be; zero: there is none
  bool is_numbered = false;
  uint32_t number = 0;  // of one that newer ones may be: its place among those that the same call made
};

// The objects and storages of a graph that is run on names, and what is done to them. All are known by the number that
// making them gave; numbers are dense. O(1), or O(log pieces) for parts of a storage, expected.
class NamedMemory {
 public:
  // `counts_writes`: autograd may run through the graph, which counts writes by storage: a tensor that it kept must not see
  // any, not even to another part.
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
  static constexpr uint32_t kCutOff = 1;  // from what it is a view of

  NamedObject& object(uint32_t object) { return objects_[object]; }
  const NamedObject& object(uint32_t object) const { return objects_[object]; }
  NamedStorage& storage(uint32_t storage) { return storages_[storage]; }
  const NamedStorage& storage(uint32_t storage) const { return storages_[storage]; }
  NamedStorage& storage_of(uint32_t object) { return storages_[objects_[object].storage]; }
  const NamedStorage& storage_of(uint32_t object) const { return storages_[objects_[object].storage]; }
  size_t num_objects() const { return objects_.size(); }
  size_t num_storages() const { return storages_.size(); }
  // The storage that a value named by a law lies on in truth; any other itself.
  uint32_t real_storage(uint32_t storage) const {
    const uint32_t real = storages_[storage].stands_on;
    return real == 0 ? storage : real - 1;
  }

  // -- what is seen

  // What all of a storage holds, by itself; and as seen now, where others may have changed it or a collective fills it.
  Hash128 all_of(uint32_t storage) const;
  Hash128 seen_all_of(uint32_t storage) { return with_state(storage, all_of(storage)); }
  // What a reader of the object sees, geometry aside.
  Hash128 data_key(uint32_t object);
  Hash128 geometry_key(uint32_t object);
  // Null where nothing calculates with it. Until a geometry is added.
  const Geometry* known_geometry(uint32_t object) {
    return is_unsure(object) ? nullptr : geometries_.find(objects_[object].geometry);
  }
  std::optional<ByteRange> byte_range(uint32_t object);
  // The elements in row-major order, wherever they lie. Nothing where something else than bytes would be copied to a tensor of
  // `like`'s dtype, device and layout, and where autograd counts.
  std::optional<Hash128> elements_key(uint32_t object, const Geometry& like);
  static Hash128 elements_key(const Hash128& data, const Geometry& geometry);
  // What one write put exactly where the object lies.
  std::optional<Hash128> exactly(uint32_t object);

  // -- what may be one

  void join_objects(uint32_t a, uint32_t b) {
    object_groups_.join(a, b);
    join_storages(objects_[a].storage, objects_[b].storage);
  }
  // That lie on one storage already.
  void join_on_storage(uint32_t a, uint32_t b) { object_groups_.join(a, b); }
  void join_storages(uint32_t a, uint32_t b);
  // What it holds has the name of what another one holds, which is another storage.
  void rename(uint32_t storage, const Hash128& content) {
    storages_[storage].content = content;
    storages_[storage].is_renamed = has_renamed_ = true;
  }
  // What was made held that first, and holds that now, and is a storage of that size: nobody has seen it yet.
  void name_anew(uint32_t storage, const Hash128& made, const Hash128& content) {
    storages_[storage].made = made;
    storages_[storage].content = content;
  }
  bool has_renamed() const { return has_renamed_; }
  // Which storage it is in truth, where it, or one that it may be, was renamed: who sees more of it than elements sees
  // that, too. Zero: what it holds tells.
  Hash128 true_storage(uint32_t storage);
  // Whether two lie on one storage, or may.
  bool may_share(uint32_t a, uint32_t b);
  // Whether another that may be it was changed since: its sizes, its bytes.
  bool is_unsure(uint32_t object) { return object_groups_.changed_by_others(object) != Hash128(); }
  bool is_storage_unsure(uint32_t storage) { return storage_groups_.changed_by_others(storage) != Hash128(); }
  // Nothing is to fill it, and nothing that may be it was changed since.
  bool is_certain(uint32_t storage) { return !storages_[storage].is_pending && !is_storage_unsure(storage); }
  uint32_t group_of(uint32_t object) { return object_groups_.group_of(object); }
  uint32_t storage_group_of(uint32_t storage) { return storage_groups_.group_of(storage); }

  // -- what is done

  // A write through an object by that call, which writes several by their places: to what it reaches, or, where that is
  // not known, to all of the storage. `copied`: the name of the elements, where they are another tensor's.
  void write(uint32_t object, const Hash128& call, uint64_t place, const std::optional<Hash128>& copied = std::nullopt);
  void write_all(uint32_t storage, const Hash128& call, uint64_t place);
  // Names what a part holds, which nobody has seen yet.
  void put_piece(uint32_t storage, const ByteRange& reach, const Hash128& content);
  // One name for all of it.
  void settle(uint32_t storage, const Hash128& content);
  void change_geometry(uint32_t object, GeometryId geometry);
  // `set_`: those that may be the object are where it is, or not.
  void move(uint32_t object, uint32_t storage, const Hash128& call);
  // A collective is to fill all of it; and has.
  void begin_filling(uint32_t storage);
  void end_filling(uint32_t storage, const Hash128& content);
  // A pending collective fills `filled` from `storage`: a write before it ends makes what it fills unsure.
  void add_reader(uint32_t storage, uint32_t filled);

 private:
  Hash128 with_state(uint32_t storage, const Hash128& content);
  // A write of that name, while collectives that have not ended may still read what is written.
  void race(uint32_t storage, const Hash128& write);
  void race_with_readers(uint32_t real, const Hash128& write);
  void note_change(uint32_t storage, const Hash128& content);

  GeometryTable& geometries_;
  const bool counts_writes_;
  std::vector<NamedObject> objects_;
  std::vector<NamedStorage> storages_;
  std::vector<Pieces> pieces_;
  std::vector<Hash128> lineages_ = {Hash128(), make_key(KeyKind::kLineage)};
  // What pending collectives fill from storages, each with the one before of the same storage.
  struct Reader {
    uint32_t filled = 0, next = 0;
  };
  std::vector<Reader> readers_;
  std::vector<uint32_t> read_;                        // storages that have readers
  HashMap<Hash128, uint32_t, Hash128Hash> num_tied_;  // how many have a number, by what made them
  bool has_renamed_ = false;
  VersionedGroups object_groups_, storage_groups_;
};

}  // namespace fxopt
