#pragma once

#include <stdexcept>
#include <string>

namespace fxopt {

// Reports a bug in fxopt itself. FXOPT_CHECK throws this exception. Only the code in cli/ catches
// this exception, writes a reproducer and exits with code 1.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// Throws InternalError with the source location and the condition.
[[noreturn]] void fail_check(const char* file, int line, const char* condition, const std::string& message);

}  // namespace fxopt

// The check is enabled in every build. `message` is evaluated only on failure.
#define FXOPT_CHECK(condition, message)                               \
  do {                                                                \
    if (!(condition)) [[unlikely]] {                                  \
      ::fxopt::fail_check(__FILE__, __LINE__, #condition, (message)); \
    }                                                                 \
  } while (false)
