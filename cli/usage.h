#pragma once

#include <string>
#include <vector>

#include "cli/arguments.h"

namespace fxopt {

// The help of a command, or of fxopt itself with its commands. Written here rather than by CLI11, whose layout changes between versions.
std::string usage_text(const CommandInfo& command, const std::vector<CommandInfo>& commands = {});

// "-o, --output OUT", "--json[=FILE]", "IN...".
std::string option_text(const OptionInfo& option);

}  // namespace fxopt
