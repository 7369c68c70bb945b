#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <unistd.h>
#include <vector>

#include "cli/app.h"

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  try {
    const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
    const bool colours =
        fxopt::wants_colours(::isatty(STDERR_FILENO) == 1, std::getenv("NO_COLOR"), std::getenv("TERM"));
    return fxopt::run_cli(args, {std::cout, std::cerr, colours});
  } catch (const std::exception& error) {
    // run_cli() answers for everything a command can do; this is for what fails outside of it, such as printing.
    std::cerr << "fxopt: " << error.what() << '\n';
    return 1;
  }
}
