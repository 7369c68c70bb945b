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

// The two streams of one run, so that tests can replace the process.
struct Output {
  std::ostream& out;
  std::ostream& err;
  bool colours = false;     // for `err`
  bool is_process = false;  // the process's own streams, which a forked process can keep using
  size_t width = 160;       // columns of a brief line on `out`
};

// True if errors are in colour: on a terminal that supports it, unless $NO_COLOR has a value. Null
// for an unset variable.
bool wants_colours(bool is_terminal, const char* no_color, const char* term);

// The output of one run: the product on standard output, messages on standard error, and with
// --json both as data in the JSON envelope. Decides the exit code: that of the first error.
class Console {
 public:
  // `args`: without the program's name. --json is looked up here, before anything is parsed, so
  // that an envelope is printed even if the rest of the line is wrong.
  Console(const Output& output, std::vector<std::string> args);
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  ~Console();

  // The subcommand, once it is known.
  void set_command(std::string_view name) { command_ = name; }

  // Inputs that may have been meant for the flag before them, see parse_line(). Errors about them
  // mention that.
  void set_misread(std::vector<std::pair<std::string, std::string>> misread) { misread_ = std::move(misread); }
  // The hint for an `input` that was meant for the flag before it, or if `input` is empty for any
  // input. Empty if no input follows such a flag.
  std::string misread_hint(const std::string& input = "") const;

  // With --werror: warnings of these codes are errors, kWarning; an empty list means all warnings.
  void set_werror(std::vector<std::string> codes) { werror_ = std::move(codes); }

  // Whether --werror makes warnings of this code errors.
  bool is_error(std::string_view warning) const;

  // With --verbose: stages of work are printed.
  void set_verbose() { log_.set_level(LogLevel::kInfo); }
  bool is_verbose() const { return log_.has(LogLevel::kInfo); }

  // Columns of standard output for lines that may be cut.
  size_t width() const { return output_.width; }

  // True if a forked process can write in place of this one, once both streams are flushed.
  bool may_fork() const { return output_.is_process; }
  void flush();

  // Standard output; discards everything if the envelope goes there.
  std::ostream& product() { return json_path_ == "-" ? nowhere_ : output_.out; }
  // Standard error.
  std::ostream& notes() { return output_.err; }
  // Writes bytes of a product to standard output. Errors: kFileWrite if not all bytes are written.
  bool write_product(std::string_view bytes);

  // Prints the error and keeps it for the envelope. The exit code is that of the error's family
  // unless given.
  void error(const Error& error);
  void error(const Error& error, ExitCode exit);
  // Warns of something that breaks nothing. `code` is stable and dashed: "unknown-sizes".
  void warning(std::string_view code, const Where& where, std::string_view message);

  // Prints a finished stage of work and its seconds on standard error, with --verbose only.
  void stage(std::string_view done, double seconds);
  // write_file(), reported as a stage that began with `watch`.
  Status write_output(const std::string& path, std::string_view bytes, Stopwatch watch = Stopwatch());

  size_t num_errors() const;
  // As in the envelope, in the order they were printed.
  const std::vector<nlohmann::ordered_json>& errors() const;

  // Command-specific part of the envelope.
  nlohmann::ordered_json& result();
  // True if result() will be used: content that only it needs is then worth computing.
  bool wants_json() const { return !json_path_.empty(); }
  bool json_takes_stdout() const { return json_path_ == "-"; }
  const std::string& json_path() const { return json_path_; }

  // Refuses a --json=FILE that another word of the command line names, whatever that word means:
  // the envelope is also written on failure, and would overwrite an input even if the line was not
  // understood. Error: kUsage.
  Status check_json_path();
  // For a FILE that must not be overwritten: no envelope is written.
  void withhold_envelope() { is_withheld_ = true; }

  // Writes the envelope to the target of --json and returns the exit code of the process. Error:
  // kFileWrite if writing to standard output or to that file failed.
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
  std::string command_ = "usage";  // until it is known
  std::string json_path_;          // empty: no envelope; "-": standard output
  ExitCode exit_ = ExitCode::kDone;
  bool has_lost_output_ = false;  // and the error was printed
  bool is_withheld_ = false;      // the envelope
  std::vector<std::pair<std::string, std::string>> misread_;
  std::optional<std::vector<std::string>> werror_;  // codes; empty: all
  std::unique_ptr<Data> data_;
};

}  // namespace fxopt
