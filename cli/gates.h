#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/report/memory/diff.h"
#include "cli/report/memory/report.h"
#include "core/result.h"

namespace fxopt {

class Options;

class MemoryPlan;

// The limits of a command line, as given.
struct GateFlags {
  std::string budget;      // "70GiB", "reserved=70GiB,allocated=60GiB"
  std::string baseline;    // a file
  std::string max_growth;  // "1%", "reserved=1%"
  std::string max_ratio;   // "active=1.10,reserved=1.10"
  bool update_baseline = false;
  bool must_fit = false;
  std::vector<std::string> inputs;  // the files of the call
  // True if a report shows the baseline, which then needs no limit.
  bool is_shown = false;
};

// Declares the options. `flags` must outlive the parsing.
void declare_gate_flags(Options options, GateFlags& flags);

// A limited peak in the baseline and now.
struct PeakGrowth {
  std::string device;
  MemoryMetric metric{};
  std::string gate, limit;  // "max_growth", "1%"
  PeakRow before, after;
  bool holds = true;
  LiveSetChange live;  // refers to both sides
};

// Limits on peaks. A limit without a metric is on the peak that the report describes,
// DeviceMemory::model.
class MemoryGates {
 public:
  // Parses the flags and reads the baseline. Errors: kBadOptionValue, kUsage (a limit without a
  // baseline, or a baseline without a use; a metric with two limits), kBadBaseline, those of
  // read_file().
  static Result<MemoryGates> make(const GateFlags& flags, const MemoryPlan& plan);

  // True if the whole live set is needed: for a comparison, or for writing a baseline.
  bool needs_all_storages() const { return !flags_.baseline.empty(); }
  bool has_limits() const { return !budgets_.empty() || !growths_.empty() || flags_.must_fit; }
  bool updates() const { return flags_.update_baseline; }
  const std::string& baseline_path() const { return flags_.baseline; }

  // Checks one graph of an input and returns an error for each broken limit: kBudgetExceeded;
  // kGrowthExceeded, with the storages that grew and the new place of the peak; kUnknownSize if a
  // relevant size is unknown; kBadBaseline if the baseline lacks the graph; kBadOptionValue for a
  // metric that no device of the graph has.
  std::vector<Error> check(const std::string& path, const GraphMemory& memory) const;

  // The limited peaks in the baseline and now, one for each limit and device. Empty if nothing is
  // compared.
  std::vector<PeakGrowth> compare(const std::string& path, const GraphMemory& memory) const;

  // The budgets that a device breaks.
  std::vector<std::pair<MemoryMetric, int64_t>> broken_budgets(const DeviceMemory& device) const;

  // The graph in the baseline, found by the file's path, as far as both sides record it. If both
  // sides have one file, names are ignored. Null if the baseline lacks the graph.
  const GraphMemory* baseline_of(const std::string& path, const std::string& graph) const;
  // The name of the baseline's only file, if the only input is compared with it under another name;
  // else empty.
  std::string other_name(const std::string& path) const;

  // The document that --update-baseline writes: the report of the call's files. `files`: as in the
  // envelope, with every storage. Entries of the baseline for other files are kept. If they cannot
  // be, `replaced` is the reason. Error: kBadBaseline if the file exists and is not a memory
  // report.
  Result<nlohmann::ordered_json> document(const MemoryPlan& plan, const nlohmann::ordered_json& files,
                                          std::string& replaced) const;

  // The limits, for the envelope.
  nlohmann::ordered_json json() const;
  // The limits as given, "--budget 70GiB --max-growth 1%"; empty without limits.
  std::string text() const;

 private:
  struct Limit {
    std::optional<MemoryMetric> metric;
    std::string text;                        // as given, without the metric
    int64_t bytes = 0;                       // for a budget
    int64_t numerator = 0, denominator = 1;  // for a growth in per cent, or for a ratio
    bool is_ratio = false;
  };
  struct BaselineFile {
    // The shortest path that distinguished it from the other files, with '/' between folders.
    std::string name;
    std::vector<GraphMemory> graphs;
  };

  static bool read_decimal(const std::string& text, Limit& limit);
  static bool is_beyond(int64_t before, int64_t after, const Limit& limit);
  static Result<std::vector<Limit>> parse_limits(const std::string& option, const std::string& text);
  Error not_a_report(std::string hint) const;
  // Reads the baseline as a memory report of any version. Errors: those of read_file();
  // not_a_report(hint).
  Result<nlohmann::ordered_json> read_report(std::string hint) const;
  // Fails if the report cannot be compared: it was made with other options, or has another version.
  Status check_comparable(const nlohmann::ordered_json& report, const MemoryPlan& plan) const;
  Status read_baseline(const MemoryPlan& plan);
  bool has_one_file() const { return baseline_.size() == 1 && flags_.inputs.size() <= 1; }
  std::optional<size_t> find_file(const std::string& path) const;
  // The file among `names` that matches an input's path; nothing if none or several match.
  std::optional<size_t> find_file(const std::vector<std::string>& names, const std::string& path) const;
  std::vector<Error> check_budget(const std::string& path, const GraphMemory& memory, const Limit& limit) const;
  std::vector<Error> check_fit(const std::string& path, const GraphMemory& memory) const;
  Error runs_out(ErrorCode code, const std::string& path, const GraphMemory& memory, const DeviceMemory& device,
                 MemoryMetric metric) const;
  std::vector<Error> check_growth(const std::string& path, const GraphMemory& memory, const GraphMemory& before,
                                  const Limit& limit) const;

  GateFlags flags_;
  bool expandable_ = false;
  std::vector<Limit> budgets_, growths_;
  std::vector<BaselineFile> baseline_;
};

// "1.00 GiB (1073741824 B) to 1.10 GiB (...), +10.000 %".
std::string growth_text(int64_t before, int64_t after);
// As fields: bytes, nodes, and the storages that grew most.
nlohmann::ordered_json growth_json(const PeakGrowth& growth);

}  // namespace fxopt
