// Checks that commands take time in proportion to the graph, whatever grows in it.
//
// Work is measured as processor time, since it has no single countable unit: these shapes have
// exposed filled tables, walked graphs and searched lists. A shape is made eight times larger, so
// that a busy machine does not decide the result. Linear time then grows 8 times, time of exponent
// 1.2 (caches) 12 times, and quadratic time 64 times. The limit, 23, is exponent 1.5. Times are the
// best of several runs; the larger graph is repeated until it is below the limit. Exponents are
// printed.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/cli/run.h"
#include "tests/scaling/shapes.h"

namespace fxopt {
namespace {

constexpr size_t kFactor = 8;
constexpr double kLimit = 23;
constexpr int kRuns = 3, kMostRuns = 8;
constexpr size_t kDeep = 100000;  // more graphs than calls fit a stack of 8 MiB

const std::vector<std::vector<std::string>> kCommands = {
    {"verify"}, {"show"}, {"show", "--summary"}, {"mem"}, {"opt", "--report", "-o", "/dev/null"}, {"diff"},
};

double seconds(const std::vector<std::string>& command, const std::string& file) {
  std::vector<std::string> args = command;
  args.push_back(file);
  if (args[0] == "diff") args.push_back(file);
  const std::clock_t start = std::clock();
  const CliResult result = run_fxopt(args);
  const std::clock_t end = std::clock();
  CAPTURE(result.err);
  REQUIRE(result.exit == 0);
  return static_cast<double>(end - start) / CLOCKS_PER_SEC;
}

double growth(const std::vector<std::string>& command, const std::string& small, const std::string& large) {
  double before = seconds(command, small), after = seconds(command, large);
  for (int i = 1; i < kRuns; ++i) before = std::min(before, seconds(command, small));
  for (int i = 1; i < kMostRuns && after > kLimit * before; ++i) after = std::min(after, seconds(command, large));
  return after / before;
}

void check_shape(const Shape& shape) {
  const TempFolder folder;
  const std::string small = folder.write("small.fxg", shape.text(shape.size)), large = folder / "large.fxg";
  write_text(large, shape.text(shape.size * kFactor));
  std::printf("%-33s", shape.name);
  for (const std::vector<std::string>& command : kCommands) {
    CAPTURE(shape.name, command);
    const double times = growth(command, small, large);
    CHECK(times < kLimit);
    std::printf("  %s %.2f", command[0].c_str(), std::log(times) / std::log(kFactor));
  }
  for (const std::string& passes : shape.passes) {
    CAPTURE(shape.name, passes);
    const double times =
        growth({"opt", "-o", "/dev/null", "--numerics", "reorders-reductions", "--passes", passes}, small, large);
    CHECK(times < kLimit);
    std::printf("  %s %.2f", passes.substr(0, passes.find('{')).c_str(), std::log(times) / std::log(kFactor));
  }
  std::printf("\n");
}

TEST_CASE("scaling: the time of commands grows with the graph, whatever is large in it") {
  for (const Shape& shape : shapes()) check_shape(shape);
}

TEST_CASE("scaling: graphs that run each other may be nested deeper than calls") {
  const TempFolder folder;
  const std::string file = folder.write("deep.fxg", nested_graphs(kDeep)), binary = folder / "deep.pb";
  CHECK(run_fxopt({"convert", file, "-o", binary}).exit == 0);
  for (const std::vector<std::string>& command : kCommands) {
    CAPTURE(command);
    static_cast<void>(seconds(command, binary));
  }
  static_cast<void>(seconds({"diff"}, binary));
}

}  // namespace
}  // namespace fxopt
