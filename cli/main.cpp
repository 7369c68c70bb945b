#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <unistd.h>
#include <vector>

#include "cli/app.h"

namespace {

bool wants_colours() {
  const char* no_color = std::getenv("NO_COLOR");
  return (no_color == nullptr || *no_color == '\0') && ::isatty(STDERR_FILENO) == 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  try {
    const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
    return fxopt::run_cli(args, {std::cout, std::cerr, wants_colours()});
  } catch (const std::exception& error) {
    // run_cli() answers for everything a command can do; this is for what fails outside of it, such as printing.
    std::cerr << "fxopt: " << error.what() << '\n';
    return 1;
  }
}
