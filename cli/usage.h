#pragma once

#include <string>
#include <string_view>

#include "cli/arguments.h"

namespace fxopt {

// Returns the help of a command. If `name` is empty, returns the help of fxopt itself, which lists
// the commands. CLI11's own layout changes between versions, so CLI11's layout is not used.
std::string usage_text(const CommandLine& line, std::string_view name = "");

// Returns an option as help shows it: "-o, --output OUT", "--json[=FILE]", "IN...".
std::string option_text(const OptionInfo& option);

}  // namespace fxopt
