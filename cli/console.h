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

// The two output streams of one command. Tests can pass streams of their own.
struct Output {
  std::ostream& out;
  std::ostream& err;
  bool colours = false;     // whether errors on `err` are in colour
  bool is_process = false;  // true for the process's own streams, which a forked process can use
  size_t width = 160;       // lines of nodes and records in brief text (`show`, `convert --brief`) are cut to this
                            // number of columns
};

// True if errors are printed in colour. This requires a terminal that supports colour, and a
// $NO_COLOR that is unset or empty. A null pointer represents an unset variable.
bool wants_colours(bool is_terminal, const char* no_color, const char* term);

// The output of one command. The product, such as a graph or a report, goes to standard output.
// Messages go to standard error. With --json, one JSON object, the envelope, holds both. The first
// error determines the exit code.
class Console {
 public:
  // `args` must not contain the program's name. The constructor looks for --json before the line is
  // parsed. The JSON object of --json is therefore printed even if the rest of the line is wrong.
  Console(const Output& output, std::vector<std::string> args);
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  ~Console();

  // Sets the subcommand as soon as it is known.
  void set_command(std::string_view name) { command_ = name; }

  // Sets the pairs of ParsedLine::misread. Each pair has an input and the flag directly before the
  // input. For `--report in.pb`, the pair is {"in.pb", "--report"}. The user may have meant
  // `--report=in.pb`, with the input as the value of the flag. If the input cannot be opened or is
  // rejected, the error suggests this form.
  void set_misread(std::vector<std::pair<std::string, std::string>> misread) { misread_ = std::move(misread); }
  // Returns a hint for an input in the pairs of set_misread(). For the pair {"in.pb", "--report"}
  // and the input "in.pb", the hint is "write --report=in.pb if you mean the file for --report". If
  // `input` is empty, returns the hint for the first pair. If no pair has this input, returns an
  // empty text.
  std::string misread_hint(const std::string& input = "") const;

  // Call this function for --werror. It turns warnings with the codes in `codes` into errors with
  // the code kWarning. An empty list means all warnings.
  void set_werror(std::vector<std::string> codes) { werror_ = std::move(codes); }

  // True if --werror turns warnings with this code into errors.
  bool is_error(std::string_view warning) const;

  // Call this function for --verbose. After this call, stage() prints.
  void set_verbose() { log_.set_level(LogLevel::kInfo); }
  bool is_verbose() const { return log_.has(LogLevel::kInfo); }

  // The number of columns that a line of brief text (`show`, `convert --brief`) on standard output
  // may have.
  size_t width() const { return output_.width; }

  // True if a forked process can write to the same streams. Both streams must be flushed first.
  bool may_fork() const { return output_.is_process; }
  void flush();

  // Standard output. If --json writes to standard output, this stream discards everything.
  std::ostream& product() { return json_path_ == "-" ? nowhere_ : output_.out; }
  // Standard error.
  std::ostream& notes() { return output_.err; }
  // Writes bytes of the command's graph or report to standard output. If some bytes cannot be
  // written, reports kFileWrite and returns false.
  bool write_product(std::string_view bytes);

  // Prints the error and keeps it for the JSON object of --json. The first error determines the
  // exit code of the process. error_info() gives this exit code for the error code. In the overload
  // with the parameter `exit`, the exit code is `exit`.
  void error(const Error& error);
  void error(const Error& error, ExitCode exit);
  // Reports the error of a result that has no value. Returns true if the result has a value.
  template <class Value>
  bool is_ok(const Result<Value>& result) {
    if (!result.ok()) error(result.error());
    return result.ok();
  }
  // Prints a warning about something that does not stop the work. `code` names the kind of warning,
  // such as "unknown-sizes". Its words are joined by dashes. A code does not change between
  // versions of fxopt.
  void warning(std::string_view code, const Where& where, std::string_view message);

  // If --verbose is given, prints a finished stage of work and its seconds on standard error.
  void stage(std::string_view done, double seconds);
  // Calls write_file() and reports the call as a stage. `watch` gives the seconds of the stage. If
  // writing fails, reports the error and returns false.
  bool write_output(const std::string& path, std::string_view bytes, Stopwatch watch = Stopwatch());

  size_t num_errors() const;
  // Returns the errors as JSON objects, in the order in which they were printed.
  const std::vector<nlohmann::ordered_json>& errors() const;

  // The member "result" of the JSON object that --json prints. Its fields depend on the command.
  nlohmann::ordered_json& result();
  // True if --json is given. If false, a command can omit work that only result() needs.
  bool wants_json() const { return !json_path_.empty(); }
  bool json_takes_stdout() const { return json_path_ == "-"; }
  const std::string& json_path() const { return json_path_; }

  // Checks the file that --json=FILE writes. Fails with kUsage if another word of the command line
  // names the same file, for example as an input. Devices and pipes are not checked. Without this
  // check, the file could be overwritten, because --json=FILE writes the file even if the line
  // cannot be parsed.
  Status check_json_path();
  // Suppresses the JSON object, because the FILE of --json=FILE must not be overwritten.
  void withhold_envelope() { is_withheld_ = true; }

  // Writes the JSON object to the target of --json and returns the exit code of the process.
  // Reports kFileWrite if standard output or the target cannot be written.
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
