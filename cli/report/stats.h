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
  size_t unknown_buffers = 0;  // of the graph; then `bytes` is a lower bound
};

// What a report compares before and after.
struct ModuleStats {
  size_t nodes = 0;
  size_t edges = 0;
  size_t recomputed = 0;               // nodes that are copies made by recompute
  std::map<std::string, int64_t> ops;  // calls by target
  std::vector<PeakBytes> peaks;        // of the top-level graphs, in order, largest device first
};

// How a report measures: the ideal peaks alone, which takes O(nodes + edges + storages), or all, as measure() does.
struct PeakView {
  MeasureOptions measure;
  bool ideal_alone = true;
};

// Of all graphs together; peaks of the top-level ones. O(nodes + edges + storages log storages), and the peaks.
ModuleStats module_stats(const Module& module, ModuleFacts& facts, const PeakView& view);

// The peaks of one graph, largest device first, after those that are there.
void add_peaks(Facts& facts, const PeakView& view, std::vector<PeakBytes>& peaks);

// Seconds of the parts of one run that are not passes.
struct RunTimes {
  double load = 0;
  double verify = 0;  // of the input, with what prepares it
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
  std::map<std::string, int64_t> verdicts, marks;  // of tags, of marks: see count_outcomes()
  RunTimes times;
  FactCounts analyses;              // how often each was made, for reports and passes
  ControlDepsResult lowered;        // of the input
  std::string proof;                // certificate_text() of what is written; empty: nothing is proved of it
  int64_t tags_without_effect = 0;  // refused by --strict-tags, or left to a remat that did not run
};

enum class Timing { kOff, kOn };  // times differ from run to run, so they are shown only when asked for
enum class Remarks { kCounted, kListed };

void print_opt_report(std::ostream& out, const OptReport& report, Timing timing);
nlohmann::ordered_json opt_report_json(const OptReport& report, Timing timing, Remarks remarks);

// What each pass did; with times, also those of what stands around the passes.
void print_passes(std::ostream& out, const OptReport& report, Timing timing);
// One line for each remark of each step.
void print_remarks(std::ostream& out, const std::vector<StepReport>& steps);

}  // namespace fxopt
