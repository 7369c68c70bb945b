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
  size_t unknown_buffers = 0;  // in the graph; if any, `bytes` is a lower bound
};

// The figures that a report compares before and after.
struct ModuleStats {
  size_t nodes = 0;
  size_t edges = 0;
  size_t recomputed = 0;               // copies made by recompute
  std::map<std::string, int64_t> ops;  // calls by target
  std::vector<PeakBytes> peaks;        // peaks of the top-level graphs, in order, largest device first
};

// How a report measures: only ideal peaks, which takes O(nodes + edges + storages), or every peak,
// as measure() does.
struct PeakView {
  MeasureOptions measure;
  bool ideal_alone = true;
};

// Counts of all graphs together, and peaks of the top-level ones. O(nodes + edges + storages log
// storages), and the peaks.
ModuleStats module_stats(const Module& module, ModuleFacts& facts, const PeakView& view);

// Appends the peaks of one graph, largest device first.
void add_peaks(Facts& facts, const PeakView& view, std::vector<PeakBytes>& peaks);

// Seconds of the stages of one run besides the passes.
struct RunTimes {
  double load = 0;
  double verify = 0;  // for the input, including preparation
  double write = 0;
};

// One input through `fxopt opt`.
struct OptReport {
  std::string file;
  std::string output;
  std::string pipeline;
  ModuleStats before;
  ModuleStats after;
  std::vector<StepReport> steps;
  std::map<std::string, int64_t> verdicts, marks;  // for tags, for marks: see count_outcomes()
  RunTimes times;
  FactCounts analyses;              // how often each was computed, for reports and passes
  ControlDepsResult lowered;        // for the input
  std::string proof;                // certificate_text() of the output; empty: nothing was proved
  int64_t tags_without_effect = 0;  // refused by --strict-tags, or left to a remat that did not run
};

enum class Timing { kOff, kOn };  // times differ from run to run, so they are shown only on request
enum class Remarks { kCounted, kListed };

void print_opt_report(std::ostream& out, const OptReport& report, Timing timing);
nlohmann::ordered_json opt_report_json(const OptReport& report, Timing timing, Remarks remarks);

// The effects of each pass; with times, also the time of the other stages.
void print_passes(std::ostream& out, const OptReport& report, Timing timing);
// One line for each remark of each step.
void print_remarks(std::ostream& out, const std::vector<StepReport>& steps);
// One line with the number of remarks of each pass that are no warnings; nothing if there are none.
void print_remark_counts(std::ostream& out, const std::vector<StepReport>& steps);

}  // namespace fxopt
