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
#include "cli/print/table.h"

namespace {

// Keeps freed memory for reuse. A proof runs after every pass, so tables of equal sizes are
// allocated many times. Returning their pages to the system would save up to a tenth of the memory
// for a large graph, but would cost a tenth of the time.
void keep_freed_memory() {
#if defined(__GLIBC__)
  constexpr int kNever = 1 << 30;
  constexpr int kAhead = 16 << 20;
  mallopt(M_MMAP_THRESHOLD, kNever);
  mallopt(M_TRIM_THRESHOLD, kNever);
  mallopt(M_TOP_PAD, kAhead);
#endif
}

// Returns the columns of the terminal that shows a stream, or 0 for a file or a pipe.
size_t terminal_columns(int stream) {
  winsize size{};
  if (::isatty(stream) != 1 || ::ioctl(stream, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

// Returns the columns of a brief line on standard output.
size_t brief_columns() {
  constexpr size_t kLeast = 80, kMost = 160;
  const size_t columns = terminal_columns(STDOUT_FILENO);
  return columns == 0 ? kMost : std::clamp(columns, kLeast, kMost);
}

}  // namespace

int main(int argc, char** argv) {
  keep_freed_memory();
  std::ios::sync_with_stdio(false);
  try {
    const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
    fxopt::set_table_width(std::cout, terminal_columns(STDOUT_FILENO));
    fxopt::set_table_width(std::cerr, terminal_columns(STDERR_FILENO));
    const bool colours =
        fxopt::wants_colours(::isatty(STDERR_FILENO) == 1, std::getenv("NO_COLOR"), std::getenv("TERM"));
    return fxopt::run_cli(args, {std::cout, std::cerr, colours, true, brief_columns()});
  } catch (const std::exception& error) {
    // run_cli() handles every error of a command. Only errors outside of commands, such as errors
    // of printing, get here.
    std::cerr << "fxopt: " << error.what() << '\n';
    return 1;
  }
}
