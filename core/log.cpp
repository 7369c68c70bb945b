#include "core/log.h"

#include <cstdlib>
#include <memory>
#include <unistd.h>

#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/spdlog.h>

namespace fxopt {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kOff:
      return spdlog::level::off;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kDebug:
      return spdlog::level::debug;
  }
  return spdlog::level::off;
}

bool wants_colours() {
  const char* no_color = std::getenv("NO_COLOR");
  return (no_color == nullptr || *no_color == '\0') && isatty(STDERR_FILENO) == 1;
}

spdlog::logger make_logger() {
  const spdlog::color_mode mode = wants_colours() ? spdlog::color_mode::always : spdlog::color_mode::never;
  spdlog::logger logger("fxopt", std::make_shared<spdlog::sinks::ansicolor_stderr_sink_mt>(mode));
  logger.set_pattern("%^%l%$: %v");
  logger.set_level(to_spdlog(LogLevel::kWarning));
  logger.flush_on(spdlog::level::trace);
  return logger;
}

// Made on first use: nothing is set up in a program that never logs.
spdlog::logger& logger() {
  static spdlog::logger instance = make_logger();
  return instance;
}

}  // namespace

void set_log_level(LogLevel level) { logger().set_level(to_spdlog(level)); }

void log(LogLevel level, std::string_view message) {
  if (level == LogLevel::kOff) return;
  logger().log(to_spdlog(level), spdlog::string_view_t(message.data(), message.size()));
}

}  // namespace fxopt
