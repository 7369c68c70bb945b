#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace fxopt {

// The two streams of one run, so that tests can stand in for the process.
struct Output {
  std::ostream& out;
  std::ostream& err;
  bool colours = false;  // of `err`
};

// What one run has to say: the product to standard output, words for people to standard error, and all of it once more,
// as data, in the JSON envelope when --json asks for it. Decides the exit code: that of the first error.
class Console {
 public:
  // `args` without the program's name. --json is looked up here, before anything is parsed, so that an envelope is
  // printed even when the rest is not understood.
  Console(const Output& output, std::vector<std::string> args);
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  // The subcommand, once it is known.
  void set_command(std::string_view name) { command_ = name; }

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

  // Command-specific part of the envelope.
  nlohmann::ordered_json& result() { return result_; }
  // True when someone will read result(): what only it needs is then worth computing.
  bool wants_json() const { return !json_path_.empty(); }
  bool json_takes_stdout() const { return json_path_ == "-"; }

  // Writes the envelope where --json wants it; returns the exit code of the process.
  int finish();

 private:
  std::string envelope() const;
  void print(const Error& error);

  Output output_;
  std::ostream nowhere_{nullptr};
  std::vector<std::string> args_;
  std::string command_ = "usage";  // until it is known
  std::string json_path_;          // empty: no envelope; "-": standard output
  ExitCode exit_ = ExitCode::kDone;
  std::vector<nlohmann::ordered_json> errors_;
  std::vector<nlohmann::ordered_json> warnings_;
  nlohmann::ordered_json result_ = nlohmann::ordered_json::object();
};

}  // namespace fxopt
