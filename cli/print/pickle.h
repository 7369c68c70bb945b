#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fxopt {

// Writes a pickle of protocol 2. Uses only opcodes that the viewer of memory snapshots understands.
// Values are written in the order of the calls. Equal strings are written only once. Each
// repetition becomes a reference to the first string. keep() and refer() do the same for other
// values. Every dict and every list must be ended. Integers must be within 2^53, because the
// viewer's numbers are exact only in this range.
class PickleWriter {
 public:
  PickleWriter() { bytes_ = "\x80\x02"; }

  void begin_dict();
  void end_dict();
  void begin_list();
  void end_list();

  void key(std::string_view name) { string(name); }
  void integer(int64_t value);
  void boolean(bool value);
  void string(std::string_view text);
  void pair(int64_t a, int64_t b);

  // Gives the number `name` to the value that was written last. Later calls of refer() can use this
  // number.
  void keep(uint32_t name);
  // If keep() gave the number `name` to a value, writes a reference to this value and returns true.
  // Otherwise returns false.
  bool refer(uint32_t name);

  // Ends the pickle and returns it.
  std::string finish();

 private:
  struct Open {
    bool is_list = false;
    size_t items = 0;  // number of items since the last MARK opcode
  };

  void item();  // called before each value
  void put(char opcode) { bytes_ += opcode; }
  void number(uint64_t value, size_t size);
  void remember();
  void recall(uint32_t slot);

  std::string bytes_;
  std::vector<Open> open_;
  std::map<std::string, uint32_t, std::less<>> strings_;
  std::map<uint32_t, uint32_t> kept_;
  uint32_t slots_ = 0;
};

}  // namespace fxopt
