#pragma once

#include <string>
#include <string_view>

#include "cli/arguments.h"

namespace fxopt {

// The help of a command, or of fxopt itself with its commands if `name` is empty. CLI11's own
// layout is not used, because it changes between versions.
std::string usage_text(const CommandLine& line, std::string_view name = "");

// "-o, --output OUT", "--json[=FILE]", "IN...".
std::string option_text(const OptionInfo& option);

}  // namespace fxopt
