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

// CLI11 parses the command line. arguments.cpp alone includes it, because its headers take ten seconds to compile. Here is what commands
// need of it, and what it lacks: values that no option takes, near matches of commands and options, and one set of words for all
// that is refused.

// An option, flag or argument while it is declared: a handle, good as long as the CommandLine.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  // What help calls the value, and what completes it: IN and FILE are paths, N is a count, which is checked.
  Option type(const std::string& name) const;
  Option required() const;
  Option excludes(Option other) const;
  // Of a repeatable option: each time takes one value.
  Option one_each() const;
  // Of a list: one value may hold several.
  Option separated_by(char delimiter) const;

  // "--output", of "-o,--output".
  std::string name() const;
  // Once the line is parsed.
  bool is_given() const;

 private:
  CLI::Option* option_;
};

// What a command takes. `value` is set when the line is parsed, and must live until then.
class Options {
 public:
  explicit Options(CLI::App& app) : app_(app) {}

  // `names`: "-o,--output", or without '-' an argument by its place.
  Option add(const std::string& names, std::string& value, const std::string& help);
  Option add(const std::string& names, std::optional<std::string>& value, const std::string& help);
  Option add(const std::string& names, std::vector<std::string>& values, const std::string& help);
  Option add(const std::string& names, uint32_t& value, const std::string& help);
  Option add(const std::string& names, uint64_t& value, const std::string& help);
  Option add(const std::string& names, std::optional<uint64_t>& value, const std::string& help);
  Option flag(const std::string& name, bool& value, const std::string& help);
  // Takes a value behind '=' only; without one it is what the name has in braces: "--report{-}".
  Option flag(const std::string& name, std::string& value, const std::string& help);
  // Text below the options in help.
  void footer(const std::string& text);

 private:
  CLI::App& app_;
};

// An option as help and completion show it.
struct OptionInfo {
  std::vector<std::string> names;  // "-o", "--output"; empty for an argument by its place
  std::string type, help;
  bool is_positional = false, is_required = false;
  bool takes_value = false;         // as the next word
  bool takes_several = false;       // values
  bool has_optional_value = false;  // behind '=' only, such as --json[=FILE]
};

struct CommandInfo {
  std::string name, summary, footer;
  std::vector<OptionInfo> options;
};

// What a line asks for, once values are stored.
struct ParsedLine {
  std::string command;         // empty while no command is known
  std::optional<Error> error;  // kUsage, kUnknownOption, kBadOptionValue
  bool wants_help = false;     // of the command, or of fxopt
  bool wants_version = false;
  bool is_verbose = false;
  // Inputs that stand directly behind a flag such as --report[=FILE], with that flag: perhaps meant for it.
  std::vector<std::pair<std::string, std::string>> misread;
};

// The command line: fxopt's own options, and commands with theirs.
class CommandLine {
 public:
  explicit CommandLine(const std::string& summary);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine();

  // A command with the options that `declare` gives it, and those of all commands.
  void add(std::string_view name, std::string_view summary, const std::function<void(Options)>& declare);

  // A line without the program's name. First fxopt's own options, then what stands behind the command. An unknown option is told of
  // before other errors, and --help answered before them. Once for each object.
  ParsedLine parse(const std::vector<std::string>& args);

  // The command, or fxopt itself where the name is empty.
  CommandInfo describe(std::string_view command) const;

 private:
  std::unique_ptr<CLI::App> app_;
};

// A command line that asks for what does not go together: kUsage.
Error usage_error(std::string message, std::string hint);

// True for a whole number from 0 to 1000000000 in plain decimal digits, without sign or leading zeros.
bool is_count(std::string_view text);

}  // namespace fxopt
