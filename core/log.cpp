#include "core/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

namespace fxopt {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  return level == LogLevel::kWarning ? spdlog::level::warn : spdlog::level::info;
}

}  // namespace

struct Log::Data {
  spdlog::logger logger;
};

Log::Log(std::ostream& stream)
    : data_(std::make_unique<Data>(
          Data{spdlog::logger("fxopt", std::make_shared<spdlog::sinks::ostream_sink_st>(stream))})) {
  data_->logger.set_pattern("%v");
  set_level(LogLevel::kWarning);
}

Log::~Log() = default;

void Log::set_level(LogLevel level) { data_->logger.set_level(to_spdlog(level)); }

bool Log::has(LogLevel level) const { return data_->logger.should_log(to_spdlog(level)); }

void Log::line(LogLevel level, std::string_view text) {
  data_->logger.log(to_spdlog(level), spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace fxopt
