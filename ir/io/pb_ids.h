#pragma once

#include <cstdint>

namespace fxopt::schema {
class Module;
}

namespace fxopt {

// Ids that count up are left out of the binary form: a node without `uid` has one more than the node before it in the
// file, over all graphs, a storage without `id` one more than the storage before it; the first has 0.
class CountedIds {
 public:
  // The id that stands at this place.
  uint64_t read(bool is_given, uint64_t given) {
    const uint64_t id = is_given ? given : next_;
    next_ = id + 1;
    return id;
  }
  // Whether `id` must be given at this place.
  bool must_give(uint64_t id) {
    const bool counts_up = id == next_;
    next_ = id + 1;
    return !counts_up;
  }

 private:
  uint64_t next_ = 0;
};

// Writes every id that was left out, for readers that take messages as they are.
void spell_ids(schema::Module& module);

}  // namespace fxopt
