#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fxopt {

// Writes a pickle of protocol 2, using only opcodes that the viewer of memory snapshots
// understands. Equal strings, and values kept under a number, are written once and then referred
// to. Values are written in order; every begun dict or list must be ended. Integers are within
// 2^53, as the viewer's numbers are.
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

  // Gives the last value written a name. Refer to it with refer().
  void keep(uint32_t name);
  // If a value is stored under this name, writes a reference to it here and returns true.
  bool refer(uint32_t name);

  // Ends the pickle.
  std::string finish();

 private:
  struct Open {
    bool is_list = false;
    size_t items = 0;  // since the last mark
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
