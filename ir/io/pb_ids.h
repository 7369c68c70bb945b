#pragma once

#include <cstdint>

namespace fxopt::schema {
class Module;
}

namespace fxopt {

// The binary form leaves out ids that count up. A node without `uid` has the previous node's plus
// one, over all graphs of the file. A storage without `id` has the previous storage's plus one. The
// first of each has 0.
class CountedIds {
 public:
  // Returns the id at this place.
  uint64_t read(bool is_given, uint64_t given) {
    const uint64_t id = is_given ? given : next_;
    next_ = id + 1;
    return id;
  }
  // Returns whether `id` must be given at this place.
  bool must_give(uint64_t id) {
    const bool counts_up = id == next_;
    next_ = id + 1;
    return !counts_up;
  }

 private:
  uint64_t next_ = 0;
};

// Writes every id that was left out, for readers that take messages literally.
void spell_ids(schema::Module& module);

}  // namespace fxopt
