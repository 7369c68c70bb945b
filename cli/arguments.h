#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"

namespace CLI {
class App;
}

namespace fxopt {

// CLI11 parses the command line; here is what it lacks: values that no option takes, near matches of commands and
// options, and one set of words for all that is refused. Two things CLI11 2.1 does not tell, so words are looked at for
// them: it takes "--name=" for "--name", and does not say which option at the end of the line lacks its value.

// What a line asks for, once CLI11 has stored its values.
struct ParsedLine {
  CLI::App* app = nullptr;     // the command; the program while no command is known
  std::optional<Error> error;  // kUsage, kUnknownOption, kBadOptionValue
  bool wants_help = false;     // of `app`
  bool wants_version = false;
  // Inputs that stand directly behind a flag such as --report[=FILE], with that flag: perhaps meant for it.
  std::vector<std::pair<std::string, std::string>> misread;
};

// Parses a line given without the program's name: first the program's own options, then, by the command alone, what
// stands behind its name. So `root` has all commands as subcommands that are disabled and leaves what it does not know;
// CLI11 2.1 takes what stands behind "--" from a subcommand that has what it needs. An unknown option is told of before
// other errors, and --help answered before them.
ParsedLine parse_line(CLI::App& root, const std::vector<std::string>& args);

}  // namespace fxopt
