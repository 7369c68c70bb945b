#pragma once

#include <memory>
#include <ostream>
#include <string_view>

namespace fxopt {

// The levels, from least to most verbose.
enum class LogLevel { kWarning, kInfo };

// Prints lines for people to one stream, which must outlive the log. Only the code in cli/ and
// runtime/ uses a log. The code in ir/ and passes/ returns its messages instead. The log is not
// thread-safe, because the stream is not thread-safe.
class Log {
 public:
  explicit Log(std::ostream& stream);  // the initial level is kWarning
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log();

  // Drops all lines that are more verbose than `level`.
  void set_level(LogLevel level);
  bool has(LogLevel level) const;

  // Writes the text unchanged, and then a line feed.
  void line(LogLevel level, std::string_view text);

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace fxopt
