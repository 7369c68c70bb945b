#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace fxopt {

// CLI11 parses the command line. Only arguments.cpp includes it, because its headers take ten
// seconds to compile. This header declares the parts that commands need, and adds three things that
// CLI11 lacks: refusal of values that no option takes, near matches of commands and options, and
// one wording for every error.

// An option, flag or argument while it is declared: a handle, valid as long as the CommandLine.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  // The type name of the value, which help prints and completion uses: IN and FILE are paths; N is
  // a count, which is checked.
  Option type(const std::string& name) const;
  Option required() const;
  Option excludes(Option other) const;
  // For a repeatable option: each occurrence takes one value.
  Option one_each() const;
  // For a list: one value may hold several, separated by `delimiter`.
  Option separated_by(char delimiter) const;

  // "--output" for "-o,--output".
  std::string name() const;
  // Valid after the line is parsed.
  bool is_given() const;

 private:
  CLI::Option* option_;
};

// The options of a command. `value` is set when the line is parsed, and must live until then.
class Options {
 public:
  explicit Options(CLI::App& app) : app_(app) {}

  // `names`: "-o,--output"; a name without '-' is a positional argument.
  Option add(const std::string& names, std::string& value, const std::string& help);
  Option add(const std::string& names, std::optional<std::string>& value, const std::string& help);
  Option add(const std::string& names, std::vector<std::string>& values, const std::string& help);
  Option add(const std::string& names, uint32_t& value, const std::string& help);
  Option add(const std::string& names, uint64_t& value, const std::string& help);
  Option add(const std::string& names, std::optional<uint64_t>& value, const std::string& help);
  Option flag(const std::string& name, bool& value, const std::string& help);
  // Takes a value only after '='. Without one, the value is the text in braces in the name:
  // "--report{-}".
  Option flag(const std::string& name, std::string& value, const std::string& help);
  // Text below the options in help.
  void footer(const std::string& text);

 private:
  CLI::App& app_;
};

// An option as help and completion show it.
struct OptionInfo {
  std::vector<std::string> names;  // "-o", "--output"; empty for a positional argument
  std::string type, help;
  bool is_positional = false, is_required = false;
  bool takes_value = false;         // as the next word
  bool takes_several = false;       // several values
  bool has_optional_value = false;  // only after '=', such as --json[=FILE]
};

struct CommandInfo {
  std::string name, summary, footer;
  std::vector<OptionInfo> options;
};

// The result of parsing a line, once values are stored.
struct ParsedLine {
  std::string command;         // empty while no command is known
  std::optional<Error> error;  // kUsage, kUnknownOption, kBadOptionValue
  bool wants_help = false;     // for the command, or for fxopt
  bool wants_version = false;
  bool is_verbose = false;
  std::string werror;  // --werror[=CODE,...]: "all" or codes; empty: not given
  // Inputs directly after a flag such as --report[=FILE], with that flag: they may be meant for it.
  std::vector<std::pair<std::string, std::string>> misread;
};

// The command line: fxopt's own options, and commands with theirs.
class CommandLine {
 public:
  explicit CommandLine(const std::string& summary);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine();

  // Adds a command with the options that `declare` adds, and those common to all commands.
  void add(std::string_view name, std::string_view summary, const std::function<void(Options)>& declare);

  // Parses a line without the program's name: first fxopt's own options, then the words after the
  // command. An unknown option is reported before other errors; --help is answered before any
  // error. Call once for each object.
  ParsedLine parse(const std::vector<std::string>& args);

  // The command, or fxopt itself if the name is empty.
  CommandInfo describe(std::string_view command) const;

 private:
  std::unique_ptr<CLI::App> app_;
};

// The error for options that contradict each other: kUsage.
Error usage_error(std::string message, std::string hint);

// True for a whole number from 0 to 1000000000 in plain decimal digits, without sign or leading
// zeros.
bool is_count(std::string_view text);

}  // namespace fxopt
