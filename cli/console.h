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

// The two streams of one run, so that tests can stand in for the process.
struct Output {
  std::ostream& out;
  std::ostream& err;
  bool colours = false;     // of `err`
  bool is_process = false;  // they are the process's own: a forked process can go on with them
};

// Errors in colour: on a terminal that can, unless $NO_COLOR has a value. Null for a variable that is not set.
bool wants_colours(bool is_terminal, const char* no_color, const char* term);

// What one run has to say: the product to standard output, words for people to standard error, and all of it once more,
// as data, in the JSON envelope when --json asks for it. Decides the exit code: that of the first error.
class Console {
 public:
  // `args` without the program's name. --json is looked up here, before anything is parsed, so that an envelope is
  // printed even when the rest is not understood.
  Console(const Output& output, std::vector<std::string> args);
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  ~Console();

  // The subcommand, once it is known.
  void set_command(std::string_view name) { command_ = name; }

  // Inputs that may have been meant for the flag before them, see parse_line(). Errors about them say so.
  void set_misread(std::vector<std::pair<std::string, std::string>> misread) { misread_ = std::move(misread); }
  // What to do when `input`, or when that is empty any input, was meant for the flag before it; empty when none stands
  // behind such a flag.
  std::string misread_hint(const std::string& input = "") const;

  // With --verbose: stages of work are told.
  void set_verbose() { log_.set_level(LogLevel::kInfo); }
  bool is_verbose() const { return log_.has(LogLevel::kInfo); }

  // Whether a forked process can write what this one would have written, once both streams are flushed.
  bool may_fork() const { return output_.is_process; }
  void flush();

  // Standard output; swallows everything when the envelope goes there.
  std::ostream& product() { return json_path_ == "-" ? nowhere_ : output_.out; }
  // Standard error.
  std::ostream& notes() { return output_.err; }
  // Writes bytes of a product to standard output. Errors: kFileWrite when it does not take them all.
  bool write_product(std::string_view bytes);

  // Prints the error and keeps it for the envelope. The exit code is that of the error's family unless given.
  void error(const Error& error);
  void error(const Error& error, ExitCode exit);
  // Something the user should know that breaks nothing. `code` is stable and dashed: "unknown-sizes".
  void warning(std::string_view code, const Where& where, std::string_view message);

  // Something that was done, and the seconds it took: a line on standard error, with --verbose alone.
  void stage(std::string_view done, double seconds);
  // write_file(), told as a stage that began with `watch`.
  Status write_output(const std::string& path, std::string_view bytes, Stopwatch watch = Stopwatch());

  size_t num_errors() const;
  // As in the envelope, in the order they were printed.
  const std::vector<nlohmann::ordered_json>& errors() const;

  // Command-specific part of the envelope.
  nlohmann::ordered_json& result();
  // True when someone will read result(): what only it needs is then worth computing.
  bool wants_json() const { return !json_path_.empty(); }
  bool json_takes_stdout() const { return json_path_ == "-"; }
  const std::string& json_path() const { return json_path_; }

  // Refuses a --json=FILE that another word of the command line names too, whatever that word means: the envelope comes
  // also on failure and would take the place of an input even when nothing was understood. Error: kUsage.
  Status check_json_path();
  // For a FILE that must not be written over: there will be no envelope.
  void withhold_envelope() { is_withheld_ = true; }

  // Writes the envelope where --json wants it; returns the exit code of the process. Error: kFileWrite when either
  // standard output or that file did not take what was written.
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
  bool has_lost_output_ = false;  // and said so
  bool is_withheld_ = false;      // the envelope
  std::vector<std::pair<std::string, std::string>> misread_;
  std::unique_ptr<Data> data_;
};

}  // namespace fxopt
