#include "core/check.h"

#include <string_view>

namespace fxopt {

void fail_check(const char* file, int line, const char* condition, const std::string& message) {
  std::string_view path = file;
  const size_t slash = path.find_last_of('/');
  if (slash != std::string_view::npos) path.remove_prefix(slash + 1);
  throw InternalError(std::string(path) + ":" + std::to_string(line) + ": " + condition + ": " + message);
}

}  // namespace fxopt
