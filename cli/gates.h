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

// The options of the command line that limit peaks or name the baseline. The baseline is an earlier
// memory report.
struct GateFlags {
  std::string budget;      // "70GiB", "reserved=70GiB,allocated=60GiB"
  std::string baseline;    // path of the baseline
  std::string max_growth;  // "1%", "reserved=1%"
  std::string max_ratio;   // "active=1.10,reserved=1.10"
  bool update_baseline = false;
  bool must_fit = false;
  std::vector<std::string> inputs;  // the files to measure
  // True if a report shows the baseline. --baseline then has an effect even without a limit.
  bool is_shown = false;
};

// Declares the options. `flags` must outlive the parsing.
void declare_gate_flags(Options options, GateFlags& flags);

// The growth of one peak. --max-growth or --max-ratio limits this growth. `before` is the peak in
// the baseline, and `after` is the peak in the measured graph.
struct PeakGrowth {
  std::string device;
  MemoryMetric metric{};
  std::string gate, limit;  // the option and its limit: "max_growth", "1%"
  PeakRow before, after;
  bool holds = true;   // false if the growth exceeds the limit
  LiveSetChange live;  // refers to the storages of both reports
};

// Limits on peaks. A limit can name a metric: "reserved=70GiB" limits the reserved peak. A limit
// without a name, such as "70GiB", applies to the ideal peak. On a CUDA device with a device
// profile, it applies to the requested peak instead: see DeviceMemory::model.
class MemoryGates {
 public:
  // Parses the flags and reads the baseline. Errors:
  // - kBadOptionValue for an invalid limit
  // - kUsage for a limit on growth without a baseline, or for a baseline that has no effect
  // - kUsage for a metric with two limits, and for other flags that do not fit together
  // - kBadBaseline for a baseline that cannot be compared
  // - the errors of read_file()
  static Result<MemoryGates> make(const GateFlags& flags, const MemoryPlan& plan);

  // True if the report must list every storage, because a baseline is compared or written.
  bool needs_all_storages() const { return !flags_.baseline.empty(); }
  bool has_limits() const { return !budgets_.empty() || !growths_.empty() || flags_.must_fit; }
  bool updates() const { return flags_.update_baseline; }
  const std::string& baseline_path() const { return flags_.baseline; }

  // Checks one graph of an input and returns an error for each limit that is broken or cannot be
  // checked:
  // - kBudgetExceeded
  // - kGrowthExceeded, with the storages that grew and the node of the new peak
  // - kUnknownSize if a relevant size is unknown
  // - kBadBaseline if the baseline lacks the graph
  // - kBadOptionValue for a metric that no device of the graph has
  std::vector<Error> check(const std::string& path, const GraphMemory& memory) const;

  // Returns a line for each budget and device, such as "@main, cuda:0: ideal peak 22.69 GiB
  // (24365354004 B), within the budget of 80.00 GiB". If --must-fit is given, also returns a line
  // for each device. Requires that check() found no error.
  std::vector<std::string> kept_limits(const GraphMemory& memory) const;

  // Returns the peaks whose growth is limited, one for each limit and device. The list is empty if
  // nothing is compared.
  std::vector<PeakGrowth> compare(const std::string& path, const GraphMemory& memory) const;

  // Returns the budgets that a device exceeds.
  std::vector<std::pair<MemoryMetric, int64_t>> broken_budgets(const DeviceMemory& device) const;

  // Returns the graph in the baseline, or null if the baseline lacks the graph. The baseline may
  // list several measured files. The graph is taken from the file that find_file() finds: for the
  // path "runs/A/step.pb", from a file named "A/step.pb" or "step.pb". If the baseline and the
  // command line each have one file, file names are ignored.
  const GraphMemory* baseline_of(const std::string& path, const std::string& graph) const;
  // The baseline and the command line may each have one file, and the names of these files may
  // differ. In this case, returns the name of the file in the baseline. In any other case, returns
  // an empty text.
  std::string other_name(const std::string& path) const;

  // Returns the document that --update-baseline writes: the report of the measured files. `files`
  // has the form of the list "files" that --json prints, and lists every storage. Entries of the
  // baseline for files that were not measured are kept. If these entries cannot be kept, `replaced`
  // is set to the reason. Fails with the errors of read_file(), and with kBadBaseline if the
  // baseline is not a memory report.
  Result<nlohmann::ordered_json> document(const MemoryPlan& plan, const nlohmann::ordered_json& files,
                                          std::string& replaced) const;

  // Returns the limits for the JSON object of --json.
  nlohmann::ordered_json json() const;
  // Returns the limits as the user wrote them, such as "--budget 70GiB --max-growth 1%". The text
  // is empty if there are no limits.
  std::string text() const;

 private:
  struct Limit {
    std::optional<MemoryMetric> metric;
    // The limit as the user wrote it, without the name of the metric: "70GiB" of "reserved=70GiB".
    std::string text;
    int64_t bytes = 0;  // the limit of --budget
    // The limit of --max-growth or --max-ratio is numerator / denominator. A growth is in per cent,
    // so 0.5% is 5 / 10. A ratio of 1.10 is 110 / 100.
    int64_t numerator = 0, denominator = 1;
    bool is_ratio = false;
  };
  struct BaselineFile {
    // The name of the file in the baseline. If --update-baseline wrote the entry of this file,
    // distinct_names() chose the name.
    std::string name;
    std::vector<GraphMemory> graphs;
  };

  static bool read_decimal(const std::string& text, Limit& limit);
  static bool is_beyond(int64_t before, int64_t after, const Limit& limit);
  static Result<std::vector<Limit>> parse_limits(const std::string& option, const std::string& text);
  Error not_a_report(std::string hint) const;
  // Reads the baseline as a memory report of any version. Fails with the errors of read_file(), or
  // with not_a_report(hint).
  Result<nlohmann::ordered_json> read_report(std::string hint) const;
  // Fails if the format version of `report` is not the version that this program reads. Also fails
  // if `report` was made with options that differ from the options of `plan`.
  Status check_comparable(const nlohmann::ordered_json& report, const MemoryPlan& plan) const;
  Status read_baseline(const MemoryPlan& plan);
  bool has_one_file() const { return baseline_.size() == 1 && flags_.inputs.size() <= 1; }
  std::optional<size_t> find_file(const std::string& path) const;
  // Returns the index in `names` of the longest name with which `path` ends. Returns nothing in
  // these cases:
  // - `path` ends with none of `names`.
  // - The name is ambiguous: for another input of the command line, it is also the longest name.
  //   For example, if `names` contains only "step.pb", this name is ambiguous for the inputs
  //   "A/step.pb" and "B/step.pb".
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

// Returns text such as "1.00 GiB (1073741824 B) to 1.10 GiB (...), +10.000 %".
std::string growth_text(int64_t before, int64_t after);
// Returns the growth as JSON: bytes, nodes, and the storages that grew most.
nlohmann::ordered_json growth_json(const PeakGrowth& growth);

}  // namespace fxopt
