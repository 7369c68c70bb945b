// Pickles that Python loads and that use no opcode unknown to the viewer of memory snapshots.

#include "cli/print/pickle.h"

#include <algorithm>
#include <string>

#include "tests/catch.h"
#include "tests/cli/run.h"

namespace fxopt {
namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

std::string integer(int64_t value) {
  PickleWriter pickle;
  pickle.integer(value);
  return pickle.finish();
}

TEST_CASE("pickle: integers in the smallest form, on both sides of each limit") {
  CHECK(integer(0) == bytes({0x80, 2, 'K', 0, '.'}));
  CHECK(integer(255) == bytes({0x80, 2, 'K', 255, '.'}));
  CHECK(integer(256) == bytes({0x80, 2, 'M', 0, 1, '.'}));
  CHECK(integer(65535) == bytes({0x80, 2, 'M', 255, 255, '.'}));
  CHECK(integer(65536) == bytes({0x80, 2, 'J', 0, 0, 1, 0, '.'}));
  CHECK(integer(-1) == bytes({0x80, 2, 'J', 255, 255, 255, 255, '.'}));
  CHECK(integer(2147483647) == bytes({0x80, 2, 'J', 255, 255, 255, 127, '.'}));
  CHECK(integer(2147483648) == bytes({0x80, 2, 0x8a, 7, 0, 0, 0, 128, 0, 0, 0, '.'}));
  CHECK(integer(0x7f0000000000) == bytes({0x80, 2, 0x8a, 7, 0, 0, 0, 0, 0, 127, 0, '.'}));
}

TEST_CASE("pickle: equal strings, and what is kept, are written once") {
  PickleWriter pickle;
  pickle.begin_list();
  pickle.string("a");
  pickle.string("a");
  CHECK_FALSE(pickle.refer(7));
  pickle.begin_dict();
  pickle.end_dict();
  pickle.keep(7);
  CHECK(pickle.refer(7));
  pickle.pair(1, 2);
  pickle.boolean(true);
  pickle.end_list();
  CHECK(pickle.finish() == bytes({0x80, 2,   ']', '(', 'X', 1, 0,   0, 0,   'a', 'q',  0,    'h', 0,  '}',
                                  '(',  'u', 'q', 1,   'h', 1, 'K', 1, 'K', 2,   0x86, 0x88, 'e', '.'}));
}

TEST_CASE("pickle: a list is written in batches of a thousand") {
  const auto batches = [](int items) {
    PickleWriter pickle;
    pickle.begin_list();
    for (int i = 0; i < items; ++i) pickle.boolean(false);
    pickle.end_list();
    const std::string text = pickle.finish();
    return std::count(text.begin(), text.end(), 'e');
  };
  CHECK(batches(1000) == 1);
  CHECK(batches(1001) == 2);
  CHECK(batches(2001) == 3);
}

TEST_CASE("cli mem --snapshot: what is refused") {
  const TempFolder folder;
  const std::string path = folder.write("twins.fxg", kTwins), out = folder / "out.pickle";
  check_ended(run_fxopt({"mem", path, "--snapshot", out}), 8, "no tensor is on a CUDA device");
  CHECK(read_text(out).empty());
  CHECK(run_fxopt({"mem", path, "--snapshot", path}).exit == 2);
  CHECK(run_fxopt({"mem", path, path, "--snapshot", out}).exit == 2);
  CHECK(run_fxopt({"mem", path, "--snapshot", "-"}).exit == 2);
}

}  // namespace
}  // namespace fxopt
