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

// CLI11 parses the command line. Only arguments.cpp includes CLI11, because CLI11's headers take
// ten seconds to compile. This header declares the classes Option, Options and CommandLine. fxopt's
// commands use these classes instead of the classes of CLI11. These classes add three features that
// CLI11 lacks:
// - Words that belong to no option are refused.
// - Errors suggest near matches of commands and options.
// - All errors are phrased in the same way.

// A handle for an option, flag or argument. The handle is valid as long as the CommandLine exists.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  // Sets the type name of the value. Help prints this name, and completion depends on this name.
  // Values of the types IN and FILE are paths. A value of the type N is a count, which the parser
  // checks with is_count().
  Option type(const std::string& name) const;
  Option required() const;
  Option excludes(Option other) const;
  // Makes each occurrence of a repeatable option take exactly one value.
  Option one_each() const;
  // Splits each value of a list option at `delimiter`.
  Option separated_by(char delimiter) const;

  // Returns the long name, such as "--output" for "-o,--output".
  std::string name() const;
  // True if the command line contains the option. Call is_given() only after the line is parsed.
  bool is_given() const;

 private:
  CLI::Option* option_;
};

// The options of a command. add() and flag() declare an option. The parameter `value` is the
// option's variable. Parsing the line sets the variable, so the variable must exist until the line
// is parsed.
class Options {
 public:
  explicit Options(CLI::App& app) : app_(app) {}

  // `names` is a list such as "-o,--output". A name without '-' is a positional argument.
  // `Value` is std::string, uint32_t, uint64_t, an optional of std::string or uint64_t, or a list
  // of std::string.
  template <class Value>
  Option add(const std::string& names, Value& value, const std::string& help);
  Option flag(const std::string& name, bool& value, const std::string& help);
  // Declares a flag that takes a value only after '='. `name` contains a text in braces, such as
  // "-" in "--report{-}". If the line contains the flag without a value, `value` becomes this text.
  Option flag(const std::string& name, std::string& value, const std::string& help);
  // Sets the text below the options in help.
  void footer(const std::string& text);

 private:
  CLI::App& app_;
};

// The description of an option for help and completion.
struct OptionInfo {
  std::vector<std::string> names;  // "-o", "--output"; empty for a positional argument
  std::string type, help;
  bool is_positional = false, is_required = false;
  bool takes_value = false;         // the next word is the option's value
  bool takes_several = false;       // several words can be the option's values
  bool has_optional_value = false;  // a value is allowed only after '=', as in --json[=FILE]
};

struct CommandInfo {
  std::string name, summary, footer;
  std::vector<OptionInfo> options;
};

// The result of parsing a line, without the values of options.
struct ParsedLine {
  std::string command;         // empty if the line names no known command
  std::optional<Error> error;  // kUsage, kUnknownOption or kBadOptionValue
  bool wants_help = false;     // help for the command, or for fxopt if `command` is empty
  bool wants_version = false;
  bool is_verbose = false;
  std::string werror;  // the value of --werror: "all" or codes; empty if it is not given
  // Pairs of an input and the flag directly before the input. The flag has an optional value, such
  // as FILE in --report[=FILE]. The user may have meant the input as the value of the flag.
  std::vector<std::pair<std::string, std::string>> misread;
};

// The command line: fxopt's own options, and the commands with their options.
class CommandLine {
 public:
  explicit CommandLine(const std::string& summary);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine();

  // Adds a command. The command has the options that `declare` adds, and the options that all
  // commands share.
  void add(std::string_view name, std::string_view summary, const std::function<void(Options)>& declare);

  // Parses a line, which must not contain the program's name. Parses fxopt's own options first,
  // then the words after the command. Reports an unknown option before any other error. If --help
  // is given, reports no error except an unknown option. Call parse() at most once for each object.
  ParsedLine parse(const std::vector<std::string>& args);

  // Describes the command, or fxopt itself if `command` is empty.
  CommandInfo describe(std::string_view command) const;

 private:
  std::unique_ptr<CLI::App> app_;
};

// Returns an error with the code kUsage, for example for options that contradict each other.
Error usage_error(std::string message, std::string hint);

// Returns an error with the code kBadOptionValue: the value of one option is not valid.
Error bad_value_error(std::string message, std::string hint = "");

// True for a whole number from 0 to 1000000000 in plain decimal digits, without sign or leading
// zeros.
bool is_count(std::string_view text);

}  // namespace fxopt
