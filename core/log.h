#pragma once

#include <memory>
#include <ostream>
#include <string_view>

namespace fxopt {

// From least to most verbose.
enum class LogLevel { kWarning, kInfo };

// Prints lines for people to one stream, which must outlive the log. For cli and runtime; ir and
// passes return their messages. Not thread-safe, because the stream is not.
class Log {
 public:
  explicit Log(std::ostream& stream);  // at kWarning
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log();

  // Lines above `level` are dropped.
  void set_level(LogLevel level);
  bool has(LogLevel level) const;

  // Writes the text unchanged, and a line feed.
  void line(LogLevel level, std::string_view text);

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace fxopt
