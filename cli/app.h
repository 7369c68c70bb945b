#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/console.h"

namespace fxopt {

// Runs one command line, given without the program's name, and returns the exit code of the process. Standard input is
// the process's own. Does not throw on any input: a mistake of ours becomes FX0101 and exit code 1.
int run_cli(const std::vector<std::string>& args, const Output& output);

// The command line's description: all subcommands with their options.
struct Application {
  std::unique_ptr<CLI::App> app;
  std::vector<CommandBody> bodies;  // of commands(), in their order

  Application();
  Application(Application&&) noexcept;
  Application& operator=(Application&&) noexcept;
  ~Application();
};

}  // namespace fxopt
