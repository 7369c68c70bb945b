#pragma once

#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/console.h"

namespace fxopt {

// Runs one command line, given without the program's name, and returns the exit code of the
// process. Standard input is the process's own. Does not throw on any input: an internal error
// becomes FX0101 and exit code 1.
int run_cli(const std::vector<std::string>& args, const Output& output);

// The command line's description: all subcommands with their options.
struct Application {
  CommandLine line;
  std::vector<CommandBody> bodies;  // in the order of commands()

  Application();
};

}  // namespace fxopt
