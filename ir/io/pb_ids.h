#pragma once

#include <cstdint>

namespace fxopt::schema {
class Module;
}

namespace fxopt {

// The binary form omits ids that count up. If a node has no `uid`, its uid is the previous node's
// uid plus one, over all graphs of the file. If a storage has no `id`, its id is the previous
// storage's id plus one. If the first node or the first storage has no id, its id is 0.
class CountedIds {
 public:
  // Returns the id of the next node or storage. `given` is the id in the file, and is used only if
  // `is_given` is true.
  uint64_t read(bool is_given, uint64_t given) {
    const uint64_t id = is_given ? given : next_;
    next_ = id + 1;
    return id;
  }
  // `id` is the id of the next node or storage. Returns true if the file must contain this id.
  bool must_give(uint64_t id) {
    const bool counts_up = id == next_;
    next_ = id + 1;
    return !counts_up;
  }

 private:
  uint64_t next_ = 0;
};

// Fills in every omitted id, for programs that read the file but do not count ids themselves.
void spell_ids(schema::Module& module);

}  // namespace fxopt
