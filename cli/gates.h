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
  bool is_shown = false;            // the baseline, in a report: it needs no limit then
};

// Declares them. `flags` must outlive the parsing.
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

// Limits on peaks. A limit that names no metric is on the peak the report describes, DeviceMemory::model.
class MemoryGates {
 public:
  // Understands the flags and reads the baseline. Errors: kBadOptionValue, kUsage (a limit without a baseline, or the
  // other way round; a metric with two limits), kBadBaseline, those of read_file().
  static Result<MemoryGates> make(const GateFlags& flags, const MemoryPlan& plan);

  // True where the whole live set is needed: to compare with, or to be a baseline.
  bool needs_all_storages() const { return !flags_.baseline.empty(); }
  bool has_limits() const { return !budgets_.empty() || !growths_.empty() || flags_.must_fit; }
  bool updates() const { return flags_.update_baseline; }
  const std::string& baseline_path() const { return flags_.baseline; }

  // Checks one graph of an input. What breaks a limit is an error: kBudgetExceeded, kGrowthExceeded with the storages
  // that grew and where the peak went, kUnknownSize where a size that matters is unknown, kBadBaseline where the
  // baseline does not have the graph, kBadOptionValue for a metric that no device of the graph has.
  std::vector<Error> check(const std::string& path, const GraphMemory& memory) const;

  // What the limited peaks were in the baseline and are now, one for each limit and device; empty where nothing is
  // compared.
  std::vector<PeakGrowth> compare(const std::string& path, const GraphMemory& memory) const;

  // The budgets that a device breaks.
  std::vector<std::pair<MemoryMetric, int64_t>> broken_budgets(const DeviceMemory& device) const;

  // The graph as the baseline has it, found by the file, by its place as far as both tell it; where both sides are
  // about one file, names do not matter. Null: it does not have it.
  const GraphMemory* baseline_of(const std::string& path, const std::string& graph) const;
  // The name of the baseline's only file, where the only input is compared with it under another name; else empty.
  std::string other_name(const std::string& path) const;

  // The report of the call's files as one document: what --update-baseline writes. `files`: as in the envelope, with
  // all storages. What the baseline holds of other files stays in it; where that cannot be, `replaced` says why. Error:
  // kBadBaseline where the file is there and is something else.
  Result<nlohmann::ordered_json> document(const MemoryPlan& plan, const nlohmann::ordered_json& files,
                                          std::string& replaced) const;

  // The limits, for the envelope.
  nlohmann::ordered_json json() const;
  // The limits as given, "--budget 70GiB --max-growth 1%"; empty where there is none.
  std::string text() const;

 private:
  struct Limit {
    std::optional<MemoryMetric> metric;
    std::string text;                        // as given, without the metric
    int64_t bytes = 0;                       // of a budget
    int64_t numerator = 0, denominator = 1;  // of a growth in per cent, or of a ratio
    bool is_ratio = false;
  };
  struct BaselineFile {
    std::string name;  // its place as far as it was needed to tell it from others, with '/' between folders
    std::vector<GraphMemory> graphs;
  };

  static bool read_decimal(const std::string& text, Limit& limit);
  static bool is_beyond(int64_t before, int64_t after, const Limit& limit);
  static Result<std::vector<Limit>> parse_limits(const std::string& option, const std::string& text);
  Error not_a_report(std::string hint) const;
  // The memory report that the baseline is, of any version. Errors: those of read_file(); not_a_report(hint).
  Result<nlohmann::ordered_json> read_report(std::string hint) const;
  // An error when the report says nothing of growth: made with other options, or of another version.
  Status check_comparable(const nlohmann::ordered_json& report, const MemoryPlan& plan) const;
  Status read_baseline(const MemoryPlan& plan);
  bool has_one_file() const { return baseline_.size() == 1 && flags_.inputs.size() <= 1; }
  std::optional<size_t> find_file(const std::string& path) const;
  // The file of `names` that an input is, by its place; nothing where there is none, or no one alone.
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
