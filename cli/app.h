#pragma once

#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/console.h"

namespace fxopt {

// Runs one command line, given without the program's name, and returns the exit code of the
// process. Commands read the standard input of the process. Never throws: an internal error is
// reported as FX0101, with exit code 1.
int run_cli(const std::vector<std::string>& args, const Output& output);

// The description of the command line: all subcommands with their options.
struct Application {
  CommandLine line;
  std::vector<CommandBody> bodies;  // the action of each command, in the order of commands()

  Application();
};

}  // namespace fxopt
