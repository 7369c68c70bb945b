#include "core/log.h"

#include <sstream>

#include "tests/catch.h"

namespace fxopt {

TEST_CASE("the log writes lines as they are, those of its level alone") {
  std::ostringstream stream;
  Log log(stream);
  log.line(LogLevel::kWarning, "one {} %s");
  log.line(LogLevel::kInfo, "two");
  CHECK_FALSE(log.has(LogLevel::kInfo));
  log.set_level(LogLevel::kInfo);
  CHECK(log.has(LogLevel::kInfo));
  stream << "between\n";
  log.line(LogLevel::kInfo, "three");
  CHECK(stream.str() == "one {} %s\nbetween\nthree\n");
}

}  // namespace fxopt
