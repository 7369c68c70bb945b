#pragma once

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "ir/graph/module.h"
#include "ir/io/control_deps.h"
#include "ir/memory/footprint.h"
#include "passes/pipeline/pipeline.h"

namespace fxopt {

// A peak of one device in one graph.
struct PeakBytes {
  std::string metric;  // "ideal", "reserved, classic"
  std::string graph;
  std::string device;
  int64_t bytes = 0;
  bool cut = false;            // memory runs out before the peak
  size_t unknown_buffers = 0;  // storages of unknown size; if any, `bytes` is a lower bound
};

// The figures that a report compares between the input and the output.
struct ModuleStats {
  size_t nodes = 0;
  size_t edges = 0;
  size_t recomputed = 0;               // number of nodes that are recomputed copies
  std::map<std::string, int64_t> ops;  // calls by target
  // The peaks of the top-level graphs, one graph after the other. Within a graph, the peaks of the
  // device with the largest peak come first.
  std::vector<PeakBytes> peaks;
};

// The peaks that a report measures. If `ideal_alone` is true, the report measures only ideal peaks,
// as analyze_memory() does. If `ideal_alone` is false, the report measures every peak, as measure()
// does.
struct PeakView {
  MeasureOptions measure;
  bool ideal_alone = true;
};

// Returns the sums of the counts of all graphs, and the peaks of the top-level graphs. Takes
// O(nodes + edges), plus the time to measure the peaks (see PeakView).
ModuleStats module_stats(const Module& module, ModuleFacts& facts, const PeakView& view);

// Appends the peaks of one graph. The device with the largest peak comes first.
void add_peaks(Facts& facts, const PeakView& view, std::vector<PeakBytes>& peaks);

// Seconds of the stages of one `fxopt opt`, without the passes.
struct RunTimes {
  double load = 0;
  double verify = 0;  // time to verify and prepare the input
  double write = 0;
};

// The report of `fxopt opt` on one input.
struct OptReport {
  std::string file;
  std::string output;
  std::string pipeline;
  ModuleStats before;
  ModuleStats after;
  std::vector<StepReport> steps;
  // `verdicts` has the number of tags for each outcome, and `marks` has the number of save marks
  // for each outcome. The keys are the words of outcome_word().
  std::map<std::string, int64_t> verdicts, marks;
  RunTimes times;
  FactCounts analyses;        // how often each analysis ran, for reports and passes
  ControlDepsResult lowered;  // the result of lower_control_deps() for the input
  std::string proof;          // certificate_text() of the output; empty if nothing was proved
  // The number of tags and save marks that --strict-tags refuses, plus the number of recompute tags
  // that no pass has carried out or rejected.
  int64_t tags_without_effect = 0;
};

enum class Timing { kOff, kOn };  // times differ from run to run, so they are shown only on request
enum class Remarks { kCounted, kListed };

void print_opt_report(std::ostream& out, const OptReport& report, Timing timing);
nlohmann::ordered_json opt_report_json(const OptReport& report, Timing timing, Remarks remarks);

// Prints the effects of each pass. With Timing::kOn, also prints the times of the passes and of the
// other stages.
void print_passes(std::ostream& out, const OptReport& report, Timing timing);
// Prints one line for each remark of each step.
void print_remarks(std::ostream& out, const std::vector<StepReport>& steps);
// Prints one line with the number of remarks of each pass. Remarks that are warnings do not count.
// Prints nothing if all numbers are 0.
void print_remark_counts(std::ostream& out, const std::vector<StepReport>& steps);

}  // namespace fxopt
