#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace fxopt {

// Random numbers that are equal on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  uint64_t next() { return engine_(); }
  uint64_t below(uint64_t limit) { return limit == 0 ? 0 : engine_() % limit; }
  bool chance(uint64_t percent) { return below(100) < percent; }

 private:
  std::mt19937_64 engine_;
};

// Returns the serialized module inside the bytes of a binary file. Ignores the stored hash. If
// `file` contains no module, returns `file`.
std::string_view module_of(std::string_view file);

// Wraps the serialized `module` in a binary file with the correct hash and counts, so that damaged
// content reaches the parser.
std::string seal(std::string_view module);

// Changes a few bytes. Flips bits, replaces bytes, or removes, repeats, copies or fills ranges.
std::string mutate_bytes(Random& random, std::string_view bytes);

// Changes a few tokens (words, strings, signs). Removes, repeats, swaps or replaces tokens, or
// changes bytes.
std::string mutate_tokens(Random& random, std::string_view text);

// Changes one field of one message of the tree below `module`, a schema::Module, and returns a
// description of the change. Changes cover numbers, enumerators, indices in and out of range,
// strings, elements added, removed, repeated and swapped, other alternatives, and deep nesting.
// Rare kinds of messages are chosen as well. O(messages).
std::string edit_field(Random& random, google::protobuf::Message& module);

}  // namespace fxopt
