#pragma once

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/error.h"
#include "core/log.h"
#include "core/result.h"
#include "core/stopwatch.h"

namespace fxopt {

// The two output streams of one run. Tests can pass streams of their own.
struct Output {
  std::ostream& out;
  std::ostream& err;
  bool colours = false;     // whether errors on `err` are in colour
  bool is_process = false;  // true for the process's own streams, which a forked process can use
  size_t width = 160;       // columns of a brief line on `out`
};

// True if errors are printed in colour. This requires a terminal that supports colour, and a
// $NO_COLOR that is unset or empty. A null pointer represents an unset variable.
bool wants_colours(bool is_terminal, const char* no_color, const char* term);

// The output of one run. The product goes to standard output, and messages go to standard error.
// With --json, the JSON envelope holds both as data. The first error determines the exit code.
class Console {
 public:
  // `args` must not contain the program's name. The constructor looks for --json before the line is
  // parsed. An envelope is therefore printed even if the rest of the line is wrong.
  Console(const Output& output, std::vector<std::string> args);
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  ~Console();

  // Sets the subcommand as soon as it is known.
  void set_command(std::string_view name) { command_ = name; }

  // Sets the inputs that may have been meant for the flag before them: see ParsedLine::misread.
  // Errors about these inputs mention the flag.
  void set_misread(std::vector<std::pair<std::string, std::string>> misread) { misread_ = std::move(misread); }
  // Returns a hint if `input` may have been meant for the flag before it. If `input` is empty,
  // returns the hint for the first misread input. If no hint applies, returns an empty text.
  std::string misread_hint(const std::string& input = "") const;

  // Call this function for --werror. It turns warnings with the codes in `codes` into errors with
  // the code kWarning. An empty list means all warnings.
  void set_werror(std::vector<std::string> codes) { werror_ = std::move(codes); }

  // True if --werror turns warnings with this code into errors.
  bool is_error(std::string_view warning) const;

  // Call this function for --verbose. After this call, stage() prints.
  void set_verbose() { log_.set_level(LogLevel::kInfo); }
  bool is_verbose() const { return log_.has(LogLevel::kInfo); }

  // The number of columns that a brief line on standard output may have.
  size_t width() const { return output_.width; }

  // True if a forked process can continue the output after both streams are flushed.
  bool may_fork() const { return output_.is_process; }
  void flush();

  // Standard output. If the envelope goes there, this stream discards everything.
  std::ostream& product() { return json_path_ == "-" ? nowhere_ : output_.out; }
  // Standard error.
  std::ostream& notes() { return output_.err; }
  // Writes bytes of a product to standard output. If some bytes cannot be written, reports
  // kFileWrite and returns false.
  bool write_product(std::string_view bytes);

  // Prints the error and keeps it for the envelope. If `exit` is not given, the family of the error
  // determines the exit code.
  void error(const Error& error);
  void error(const Error& error, ExitCode exit);
  // Reports the error of a result that has no value. Returns true if the result has a value.
  template <class Value>
  bool is_ok(const Result<Value>& result) {
    if (!result.ok()) error(result.error());
    return result.ok();
  }
  // Prints a warning about something that does not stop the work. `code` never changes and has
  // dashes between its words: "unknown-sizes".
  void warning(std::string_view code, const Where& where, std::string_view message);

  // If --verbose is given, prints a finished stage of work and its seconds on standard error.
  void stage(std::string_view done, double seconds);
  // Calls write_file(), and reports the call as a stage or its error. `watch` gives the seconds of
  // the stage. Returns true if the file is written.
  bool write_output(const std::string& path, std::string_view bytes, Stopwatch watch = Stopwatch());

  size_t num_errors() const;
  // Returns the errors as the envelope holds them, in the order in which they were printed.
  const std::vector<nlohmann::ordered_json>& errors() const;

  // The part of the envelope that depends on the command.
  nlohmann::ordered_json& result();
  // True if the envelope will be written. If false, a command can omit work that only result()
  // needs.
  bool wants_json() const { return !json_path_.empty(); }
  bool json_takes_stdout() const { return json_path_ == "-"; }
  const std::string& json_path() const { return json_path_; }

  // Fails with kUsage if another word of the command line names the FILE of --json=FILE. The
  // meaning of that word does not matter. The envelope is also written on failure, so it would
  // overwrite an input even if the line is not understood.
  Status check_json_path();
  // Suppresses the envelope, because its FILE must not be overwritten.
  void withhold_envelope() { is_withheld_ = true; }

  // Writes the envelope to the target of --json and returns the exit code of the process. Reports
  // kFileWrite if standard output or the target cannot be written.
  int finish();

 private:
  struct Data;  // the parts of the envelope

  std::string envelope() const;
  void print(const Error& error);
  void check_stdout();

  Output output_;
  Log log_{output_.err};
  std::ostream nowhere_{nullptr};
  std::vector<std::string> args_;
  std::string command_ = "usage";  // the value until the subcommand is known
  std::string json_path_;          // empty: no envelope; "-": standard output
  ExitCode exit_ = ExitCode::kDone;
  bool has_lost_output_ = false;  // standard output failed, and the error was printed
  bool is_withheld_ = false;      // the envelope must not be written
  std::vector<std::pair<std::string, std::string>> misread_;
  std::optional<std::vector<std::string>> werror_;  // an empty list means all codes
  std::unique_ptr<Data> data_;
};

}  // namespace fxopt
