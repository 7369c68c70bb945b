#pragma once

#include <string>
#include <string_view>

#include "cli/arguments.h"

namespace fxopt {

// Returns the help of a command. If `name` is empty, returns the help of fxopt itself, which lists
// the commands. The layout is not CLI11's, because that layout changes between versions.
std::string usage_text(const CommandLine& line, std::string_view name = "");

// Returns an option as help shows it: "-o, --output OUT", "--json[=FILE]", "IN...".
std::string option_text(const OptionInfo& option);

}  // namespace fxopt
