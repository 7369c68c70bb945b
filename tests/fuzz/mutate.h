#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace fxopt {

// Small random choices that are the same on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  uint64_t next() { return engine_(); }
  uint64_t below(uint64_t limit) { return limit == 0 ? 0 : engine_() % limit; }
  bool chance(uint64_t percent) { return below(100) < percent; }

 private:
  std::mt19937_64 engine_;
};

// The serialized module inside the bytes of a binary file, whatever hash stands beside it; `file` itself where there is
// none.
std::string_view module_of(std::string_view file);

// A binary file around the serialized `module`, with the hash and the counts of these bytes: what keeps damage from the
// parser is no obstacle any more.
std::string seal(std::string_view module);

// A few changes of bytes: bits flipped, bytes replaced, ranges removed, repeated, copied elsewhere, filled.
std::string mutate_bytes(Random& random, std::string_view bytes);

// A few changes of tokens (words, strings, signs): removed, repeated, swapped, replaced by another one, or of bytes.
std::string mutate_tokens(Random& random, std::string_view text);

// Changes one field of one message of the tree below `module`, a schema::Module, and says which and how: numbers,
// enumerators, indices in and out of range, strings, elements added, removed, repeated and swapped, other alternatives,
// deep nesting. All kinds of messages come up, rare ones too. O(messages).
std::string edit_field(Random& random, google::protobuf::Message& module);

}  // namespace fxopt
