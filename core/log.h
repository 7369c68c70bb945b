#pragma once

#include <string_view>

namespace fxopt {

// From least to most talkative.
enum class LogLevel { kOff, kError, kWarning, kInfo, kDebug };

// Messages above `level` are dropped. The level at start is kWarning.
void set_log_level(LogLevel level);

// Writes one line to standard error: "warning: message". Coloured only when standard error is a terminal and the
// environment variable NO_COLOR is unset or empty. For cli and runtime; ir and passes return what they have to say.
// Thread-safe.
void log(LogLevel level, std::string_view message);

}  // namespace fxopt
