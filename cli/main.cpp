#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <unistd.h>
#include <vector>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "cli/app.h"

namespace {

// Keeps what is freed for what comes next: tables of the same sizes are made again and again (a proof after every pass), and
// returning their pages in between costs a tenth of the time of a large graph, for as much less memory.
void keep_freed_memory() {
#if defined(__GLIBC__)
  constexpr int kNever = 1 << 30;
  constexpr int kAhead = 16 << 20;
  mallopt(M_MMAP_THRESHOLD, kNever);
  mallopt(M_TRIM_THRESHOLD, kNever);
  mallopt(M_TOP_PAD, kAhead);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  keep_freed_memory();
  std::ios::sync_with_stdio(false);
  try {
    const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
    const bool colours =
        fxopt::wants_colours(::isatty(STDERR_FILENO) == 1, std::getenv("NO_COLOR"), std::getenv("TERM"));
    return fxopt::run_cli(args, {std::cout, std::cerr, colours, true});
  } catch (const std::exception& error) {
    // run_cli() answers for everything a command can do; this is for what fails outside of it, such as printing.
    std::cerr << "fxopt: " << error.what() << '\n';
    return 1;
  }
}
