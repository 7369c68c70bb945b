#include "core/log.h"

#include <cstdio>
#include <string>
#include <unistd.h>

#include "core/file.h"
#include "tests/catch.h"
#include "tests/core/temp_folder.h"

namespace fxopt {
namespace {

// What `action` writes to standard error.
template <class Action>
std::string capture_stderr(Action action) {
  const TempFolder folder;
  const std::string path = folder / "stderr";
  std::fflush(stderr);
  const int saved = dup(STDERR_FILENO);
  REQUIRE(std::freopen(path.c_str(), "w", stderr) != nullptr);
  action();
  std::fflush(stderr);
  dup2(saved, STDERR_FILENO);
  close(saved);
  return read_file(path).value();
}

}  // namespace

TEST_CASE("the log has levels, goes to standard error and has no colours in a file") {
  const std::string text = capture_stderr([] {
    log(LogLevel::kWarning, "one {} %s");
    log(LogLevel::kInfo, "two");
    set_log_level(LogLevel::kDebug);
    log(LogLevel::kDebug, "three");
    set_log_level(LogLevel::kOff);
    log(LogLevel::kError, "four");
    log(LogLevel::kOff, "five");
    set_log_level(LogLevel::kWarning);
  });
  CHECK(text == "warning: one {} %s\ndebug: three\n");
}

}  // namespace fxopt
