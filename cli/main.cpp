#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <sys/ioctl.h>
#include <unistd.h>
#include <vector>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "cli/app.h"

namespace {

// Keeps freed memory for reuse: tables of equal sizes are allocated again and again (a proof runs
// after every pass). Returning their pages to the system would save up to a tenth of the memory of
// a large graph, and cost a tenth of its time.
void keep_freed_memory() {
#if defined(__GLIBC__)
  constexpr int kNever = 1 << 30;
  constexpr int kAhead = 16 << 20;
  mallopt(M_MMAP_THRESHOLD, kNever);
  mallopt(M_TRIM_THRESHOLD, kNever);
  mallopt(M_TOP_PAD, kAhead);
#endif
}

// Columns of the terminal behind standard output, from 80 to 160; 160 for a file or a pipe.
size_t columns() {
  constexpr size_t kLeast = 80, kMost = 160;
  winsize size{};
  if (::isatty(STDOUT_FILENO) != 1 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kMost;
  return std::clamp(size_t{size.ws_col}, kLeast, kMost);
}

}  // namespace

int main(int argc, char** argv) {
  keep_freed_memory();
  std::ios::sync_with_stdio(false);
  try {
    const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
    const bool colours =
        fxopt::wants_colours(::isatty(STDERR_FILENO) == 1, std::getenv("NO_COLOR"), std::getenv("TERM"));
    return fxopt::run_cli(args, {std::cout, std::cerr, colours, true, columns()});
  } catch (const std::exception& error) {
    // run_cli() handles every error of a command; this handles errors outside of it, such as
    // printing.
    std::cerr << "fxopt: " << error.what() << '\n';
    return 1;
  }
}
