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

// The limits of one call, checked graph by graph and reported to a console. `mem` checks its
// inputs, `opt` its results. Refers to all of its arguments.
class GateCheck {
 public:
  GateCheck(Console& console, const MemoryPlan& plan, const MemoryGates& gates)
      : console_(console), plan_(plan), gates_(gates) {}

  // Reports and returns the limits that one graph of an input breaks. Warns if --symbol gave a
  // range: limits hold only for the values at which the peaks were measured. `path`: the file as
  // reports name it; `shown`: as messages name it.
  std::vector<Error> check(const std::string& path, const std::string& shown, const GraphMemory& memory,
                           const MemoryView& view);

  // Prints how the limited peaks changed since the baseline, and returns the changes for --json.
  nlohmann::ordered_json compare(const std::string& path, const std::string& shown, const GraphMemory& memory,
                                 std::ostream& out);

  // Adds the graphs of a file, with all their storages, to the baseline to be written.
  void add(const std::string& path, nlohmann::ordered_json graphs);

  // Writes the baseline for --update-baseline. An error of any input leaves the old one unchanged:
  // a baseline without that input would accept anything.
  void write_baseline();

 private:
  void warn_of_range(const std::string& shown, const GraphMemory& memory);

  Console& console_;
  const MemoryPlan& plan_;
  const MemoryGates& gates_;
  nlohmann::ordered_json baseline_ = nlohmann::ordered_json::array();
  std::string named_;  // the file whose comparison under another name was reported last
};

}  // namespace fxopt
