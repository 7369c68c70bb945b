#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"

namespace CLI {
class App;
}

namespace fxopt {

// What a command line names, before anything is stored or run.
struct CheckedLine {
  const CLI::App* command = nullptr;  // the root while no command is known
  std::optional<Error> error;
  // The same line with the options first and the arguments behind "--", which is what CLI11 reads without a doubt.
  std::vector<std::string> args;
  // Inputs that stand directly behind a flag such as --report[=FILE], with that flag: perhaps meant for it.
  std::vector<std::pair<std::string, std::string>> misread;
};

// Checks every word against what the commands declare, so that all of them are refused in the same words, unknown
// options before anything else: options and values that are missing, empty, given twice, or exclude each other; counts
// (options of type N); arguments that are missing or too many. What passes, CLI11 parses from `args`. Errors: kUsage,
// kUnknownOption, kBadOptionValue. O(words * options).
CheckedLine check_arguments(const CLI::App& root, const std::vector<std::string>& args);

// True for a whole number from 0 to 1000000000 in plain decimal digits, without sign or leading zeros.
bool is_count(std::string_view text);

}  // namespace fxopt
