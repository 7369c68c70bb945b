#pragma once

#include <ostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/gates.h"
#include "cli/memory_options.h"
#include "cli/report/memory/report.h"

namespace fxopt {

class Console;

// Checks the memory limits of one command line, graph by graph, and reports to a console. `mem`
// checks its inputs, and `opt` checks its results. The object holds references to the arguments of
// its constructor, so they must outlive the object.
class GateCheck {
 public:
  GateCheck(Console& console, const MemoryPlan& plan, const MemoryGates& gates)
      : console_(console), plan_(plan), gates_(gates) {}

  // Finds, reports and returns the limits that one graph of an input breaks. Limits are checked
  // only for the symbol values at which the peaks were measured. --symbol may give a range of
  // values. If the largest ideal peak (live bytes without allocator overhead) in this range differs
  // from the measured ideal peak, prints a warning. `path` is the name of the file in reports, and
  // `shown` is the name of the file in messages.
  std::vector<Error> check(const std::string& path, const std::string& shown, const GraphMemory& memory,
                           const MemoryView& view);

  // Compares each peak that has a limit of --max-growth or --max-ratio with the same peak in the
  // baseline. The baseline is an earlier memory report. Prints one line for each limit and device,
  // and returns the changes for --json. Leaves out a peak if one of the two reports lacks it, or if
  // memory ran out before it. If the only input and the baseline's only file have different names,
  // prints the warning `baseline-other-name` once.
  nlohmann::ordered_json compare(const std::string& path, const std::string& shown, const GraphMemory& memory,
                                 std::ostream& out);

  // Adds the graphs of a file to the new baseline. `graphs` must list every storage.
  void add(const std::string& path, nlohmann::ordered_json graphs);

  // Writes the baseline for --update-baseline. If any error was reported, leaves the old baseline
  // unchanged.
  void write_baseline();

 private:
  void warn_of_range(const std::string& shown, const GraphMemory& memory);

  Console& console_;
  const MemoryPlan& plan_;
  const MemoryGates& gates_;
  nlohmann::ordered_json baseline_ = nlohmann::ordered_json::array();
  // The input file for which the warning `baseline-other-name` was last printed.
  std::string named_;
};

}  // namespace fxopt
