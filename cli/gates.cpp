#include "cli/gates.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/files.h"
#include "cli/memory_options.h"
#include "cli/print/table.h"
#include "cli/report/memory/diff.h"
#include "cli/take.h"
#include "core/bytes.h"
#include "core/file.h"
#include "core/saturate.h"
#include "core/text.h"
#include "core/version.h"

namespace fxopt {
namespace {

constexpr int kDocumentVersion = 1;
constexpr uint64_t kMaxBaselineBytes = uint64_t{1} << 30;
constexpr size_t kMaxNamed = 5;
constexpr size_t kMaxListed = 20;
constexpr size_t kMaxDigits = 12;  // digits of a limit: its product with bytes fits into 127 bits

std::string device_name(const DeviceMemory& device) { return device.device.empty() ? "no device" : device.device; }

MemoryMetric metric_of(const DeviceMemory& device, const std::optional<MemoryMetric>& metric) {
  return metric.value_or(device.model == "ideal" ? MemoryMetric::kIdeal : MemoryMetric::kRequested);
}

Where where_of(const std::string& path, const GraphMemory& memory, const std::string& node) {
  return where_in(shown_input(path), memory.graph, node);
}

Error lacks_metric(const std::string& path, const GraphMemory& memory, MemoryMetric metric) {
  return {ErrorCode::kBadOptionValue,
          "no device of this graph has a peak '" + std::string(metric_name(metric)) +
              "': only CUDA devices use the caching allocator",
          "with --budget, limit a peak that every device has: ideal, requested or arena", where_of(path, memory, "")};
}

Error unknown_sizes(const std::string& path, const GraphMemory& memory) {
  const std::string node = memory.unknown_nodes.empty() ? "" : memory.unknown_nodes.front();
  return {ErrorCode::kUnknownSize,
          "the limit cannot be checked, because the size of " + count_text(memory.unknown, "storage") + " is unknown",
          "set the values of the symbols with --symbol NAME=VALUE", where_of(path, memory, node)};
}

// Returns the remedy for a peak that is too high. If no tried policy helps, returns `otherwise`.
std::string advice_hint(const GraphMemory& memory, const DeviceMemory& device, std::string_view otherwise) {
  if (device.advice.has_value()) return advice_text(*device.advice);
  if (memory.has_advice) return std::string(otherwise);
  if (memory.step.empty())
    return "recompute policies are not tried here; to try them, run `fxopt mem` on the input with the same limits";
  return "recompute policies are not tried on a step; try the passes 'sac{policy=per-op},partition' on the joint "
         "graph, or 'join,sac{policy=per-op},partition' on this file";
}

// Returns the reason why a peak grew: the storages that grew most, then the new node of the peak.
std::string grown_text(const DeviceMemory& before, const PeakRow& peak_before, const DeviceMemory& after,
                       const PeakRow& peak_after) {
  const LiveSetChange live = compare_live_sets(before, peak_before, after, peak_after);
  std::string text;
  size_t named = 0, more = 0;
  for (const StorageChange& change : live.changes) {
    if (change.growth() <= 0) break;
    if (named == kMaxNamed) {
      ++more;
      continue;
    }
    text += (named++ == 0 ? "grew at the peak: " : "; ") + change_text(change);
  }
  if (more > 0) text += "; and " + std::to_string(more) + " more";
  if (named == 0) text = "no storage at the peak has grown, but blocks or segments have grown";
  if (live.moved) {
    text += "; the peak moved from %" + printable_line(peak_before.node) + " to %" + printable_line(peak_after.node);
  }
  return text;
}

}  // namespace

void declare_gate_flags(Options options, GateFlags& flags) {
  options
      .add("--budget", flags.budget,
           "exit with 5 if a peak is above its limit. An example of two limits is reserved=70GiB,allocated=64GiB (see "
           "`fxopt help memory` for the names). A limit without a name, as in 70GiB, applies to the peak of live "
           "bytes. With --device, "
           "such a limit applies to the peak of the bytes that are requested from PyTorch's caching allocator")
      .type("LIMITS");
  options
      .add("--baseline", flags.baseline,
           "file with the peaks that an earlier call of fxopt measured. --max-growth and --max-ratio compare with this "
           "file, and --update-baseline writes it")
      .type("FILE");
  options
      .add("--max-growth", flags.max_growth,
           "exit with 5 if a peak grew by more than a limit. The limit reserved=1% allows the reserved peak to be 1 % "
           "above its value in the file of --baseline. A limit without a name, such as 1%, applies to the peak of live "
           "bytes. With --device, it applies to the peak of the bytes that are requested from PyTorch's caching "
           "allocator")
      .type("LIMITS");
  options
      .add("--max-ratio", flags.max_ratio,
           "exit with 5 if the ratio of a peak to its value in the file of --baseline is above a limit. An example of "
           "two limits is active=1.10,reserved=1.10")
      .type("LIMITS");
  options.flag("--must-fit", flags.must_fit,
               "exit with 5 if the graph needs more memory than the device has. --device or --device-memory sets the "
               "memory size of the device");
  options.flag("--update-baseline", flags.update_baseline,
               "write the measured peaks to the file of --baseline instead of comparing with this file. Entries for "
               "graph files that are not measured now are kept");
}

bool MemoryGates::read_decimal(const std::string& text, Limit& limit) {
  const size_t point = text.find('.');
  const std::string digits = point == std::string::npos ? text : text.substr(0, point) + text.substr(point + 1);
  const size_t behind = point == std::string::npos ? 0 : text.size() - point - 1;
  const std::optional<int64_t> number = parse_int64(digits);
  if (!number.has_value() || digits.starts_with('-') || digits.size() > kMaxDigits || point == 0) return false;
  limit.numerator = *number;
  limit.denominator = 1;
  for (size_t i = 0; i < behind; ++i) limit.denominator *= 10;
  return true;
}

Result<std::vector<MemoryGates::Limit>> MemoryGates::parse_limits(const std::string& option, const std::string& text) {
  std::vector<Limit> limits;
  if (has_empty_part(text)) {
    return bad_value_error("'" + text + "' is not a valid value of " + option + ": a limit in the list is empty",
                           "write limits with one comma between them, as in reserved=70GiB,allocated=64GiB");
  }
  for (const std::string_view part : split_list(text)) {
    Limit limit;
    limit.is_ratio = option == "--max-ratio";
    const size_t equals = part.find('=');
    limit.text = part.substr(equals == std::string_view::npos ? 0 : equals + 1);
    if (equals != std::string_view::npos) {
      limit.metric = find_metric(part.substr(0, equals));
      if (!limit.metric.has_value()) {
        return bad_value_error(
            option + " limits '" + std::string(part.substr(0, equals)) + "', which is not the name of a peak",
            "the peaks are ideal, requested, allocated, active, reserved, arena");
      }
    } else if (limit.is_ratio) {
      return bad_value_error("--max-ratio needs the name of a peak, which is missing in '" + std::string(part) + "'",
                             "write it as in active=1.10,reserved=1.10");
    }
    const bool repeats = std::any_of(limits.begin(), limits.end(),
                                     [&limit](const Limit& other) { return other.metric == limit.metric; });
    if (repeats) {
      return usage_error(option + " limits the same peak twice", "keep the lower limit");
    }
    if (option == "--budget") {
      const Result<int64_t> bytes = bytes_option(option, limit.text);
      if (!bytes.ok()) return bytes.error();
      limit.bytes = *bytes;
    } else {
      const bool is_percent = limit.text.ends_with('%');
      std::string number = is_percent ? limit.text.substr(0, limit.text.size() - 1) : limit.text;
      while (number.ends_with(' ')) number.pop_back();
      // Growth without a percent sign is a fraction below 1: 0.01 means 1%.
      const bool is_share = !limit.is_ratio && !is_percent;
      const bool is_ratio_in_percent = limit.is_ratio && is_percent;
      if (is_ratio_in_percent || !read_decimal(number, limit) || (is_share && limit.numerator >= limit.denominator)) {
        return bad_value_error(
            "'" + limit.text + "' is not a valid value of " + option,
            limit.is_ratio ? "a ratio is written as in 1.10" : "growth is written as in 1%, 0.5% or 0.01");
      }
      if (is_share) limit.numerator *= 100;
    }
    limits.push_back(std::move(limit));
  }
  return limits;
}

Result<MemoryGates> MemoryGates::make(const GateFlags& flags, const MemoryPlan& plan) {
  MemoryGates gates;
  gates.flags_ = flags;
  gates.expandable_ = plan.expandable();
  const Status budgets = take(gates.budgets_, parse_limits("--budget", flags.budget));
  if (!budgets.ok()) return budgets.error();
  for (const auto& [option, text] : {std::pair("--max-growth", &flags.max_growth), {"--max-ratio", &flags.max_ratio}}) {
    Result<std::vector<Limit>> limits = parse_limits(option, *text);
    if (!limits.ok()) return std::move(limits).error();
    gates.growths_.insert(gates.growths_.end(), limits->begin(), limits->end());
  }
  const bool has_limit = !gates.growths_.empty();
  if ((has_limit || flags.update_baseline) && flags.baseline.empty()) {
    return usage_error(std::string(has_limit ? "a limit on growth" : "--update-baseline") + " needs --baseline",
                       "name the file with --baseline FILE");
  }
  if (has_limit && flags.update_baseline) {
    return usage_error(
        "--update-baseline writes the baseline and does not compare with it, so a limit on growth has no effect",
        "compare first, with --max-growth or --max-ratio, then update in a second call");
  }
  if (!flags.baseline.empty() && !has_limit && !flags.update_baseline && !flags.is_shown) {
    return usage_error("--baseline has no effect",
                       "give a limit, such as --max-growth 1%, or --markdown FILE, or --update-baseline");
  }
  if (flags.must_fit && !plan.knows_device_memory()) {
    return usage_error("--must-fit needs the memory size of the device",
                       "give --device, such as h100, or --device-memory 80GiB");
  }
  if (flags.baseline.empty()) return gates;
  std::set<std::string> names;
  for (const std::string& name : distinct_names(flags.inputs)) {
    if (names.insert(name).second) continue;
    return usage_error("the input '" + name + "' is given twice, but a baseline has only one entry for each file",
                       "give each input once");
  }
  if (flags.update_baseline) return gates;
  if (const Status status = gates.read_baseline(plan); !status.ok()) return status.error();
  return gates;
}

Error MemoryGates::not_a_report(std::string hint) const {
  return {ErrorCode::kBadBaseline, "the baseline is not a memory report", std::move(hint), where_in(flags_.baseline)};
}

Result<nlohmann::ordered_json> MemoryGates::read_report(std::string hint) const {
  const Result<std::string> text = read_file(flags_.baseline, kMaxBaselineBytes);
  if (!text.ok()) {
    Error error = text.error();
    if (error.code == ErrorCode::kFileOpen)
      error.hint = "write the baseline first, with --update-baseline in place of --max-growth and --max-ratio";
    return error;
  }
  nlohmann::ordered_json whole = nlohmann::ordered_json::parse(*text, nullptr, false);
  if (!whole.is_object()) return not_a_report(std::move(hint));
  nlohmann::ordered_json report = whole.contains("result") ? std::move(whole["result"]) : std::move(whole);
  try {
    if (report.at("memory_report") != kDocumentVersion) return report;
    static_cast<void>(report.at("options").get_ref<const nlohmann::ordered_json::object_t&>());
    for (const nlohmann::ordered_json& file : report.at("files")) {
      static_cast<void>(file.at("file").get_ref<const std::string&>());
    }
  } catch (const nlohmann::json::exception&) {
    return not_a_report(std::move(hint));
  }
  return report;
}

Status MemoryGates::check_comparable(const nlohmann::ordered_json& report, const MemoryPlan& plan) const {
  Error error = not_a_report("write one with --update-baseline");
  if (report.at("memory_report") != kDocumentVersion) {
    error.message = "the baseline is a memory report of version " + report.at("memory_report").dump() +
                    ", but this fxopt reads version " + std::to_string(kDocumentVersion);
    return error;
  }
  const nlohmann::ordered_json options = plan.json();
  nlohmann::ordered_json given = report.at("options");
  given.emplace("comm_lifetime", "wait");  // not recorded by reports that predate the option
  for (const auto& [key, value] : options.items()) {
    const nlohmann::ordered_json was = given.value(key, nlohmann::ordered_json());
    if (was == value) continue;
    error.message =
        "the baseline was made with other options: " + key + " was " + was.dump() + " and is now " + value.dump();
    error.hint = "measure with the same options, or replace the baseline with --update-baseline";
    return error;
  }
  return ok_status();
}

Status MemoryGates::read_baseline(const MemoryPlan& plan) {
  const std::string hint = "write one with --update-baseline";
  const Result<nlohmann::ordered_json> report = read_report(hint);
  if (!report.ok()) return report.error();
  if (const Status comparable = check_comparable(*report, plan); !comparable.ok()) return comparable.error();
  try {
    for (const nlohmann::ordered_json& file : report->at("files")) {
      BaselineFile& added = baseline_.emplace_back();
      added.name = file.at("file").get<std::string>();
      for (const nlohmann::ordered_json& graph : file.at("graphs")) added.graphs.push_back(memory_from_json(graph));
    }
  } catch (const nlohmann::json::exception&) {
    return not_a_report(hint);
  }
  return ok_status();
}

std::optional<size_t> MemoryGates::find_file(const std::vector<std::string>& names, const std::string& path) const {
  const auto longest = [&names](const std::string& input) {
    std::optional<size_t> found;
    for (size_t i = 0; i < names.size(); ++i) {
      const bool is_better = !found.has_value() || names[i].size() > names[*found].size();
      if (is_better && ends_with_path(input, names[i])) found = i;
    }
    return found;
  };
  const std::optional<size_t> found = longest(path);
  const auto is_same = [&](const std::string& input) { return found.has_value() && longest(input) == found; };
  const ptrdiff_t claims = std::count_if(flags_.inputs.begin(), flags_.inputs.end(), is_same);
  return claims > 1 ? std::nullopt : found;
}

std::optional<size_t> MemoryGates::find_file(const std::string& path) const {
  std::vector<std::string> names;
  for (const BaselineFile& file : baseline_) names.push_back(file.name);
  return find_file(names, path);
}

std::string MemoryGates::other_name(const std::string& path) const {
  return has_one_file() && !find_file(path).has_value() ? baseline_.front().name : "";
}

const GraphMemory* MemoryGates::baseline_of(const std::string& path, const std::string& graph) const {
  const std::optional<size_t> found = has_one_file() ? std::optional<size_t>(0) : find_file(path);
  if (!found.has_value()) return nullptr;
  for (const GraphMemory& memory : baseline_[*found].graphs) {
    if (memory.graph == graph) return &memory;
  }
  return nullptr;
}

std::vector<Error> MemoryGates::check(const std::string& path, const GraphMemory& memory) const {
  std::vector<Error> errors;
  const auto add = [&errors](std::vector<Error> more) {
    std::move(more.begin(), more.end(), std::back_inserter(errors));
  };
  for (const Limit& limit : budgets_) add(check_budget(path, memory, limit));
  if (flags_.must_fit) add(check_fit(path, memory));
  if (flags_.update_baseline || growths_.empty()) return errors;
  const GraphMemory* before = baseline_of(path, memory.graph);
  if (before == nullptr) {
    errors.push_back({ErrorCode::kBadBaseline, "the baseline " + flags_.baseline + " does not have this graph",
                      "graphs are matched by file path and graph name; add this graph with --update-baseline",
                      where_of(path, memory, "")});
    return errors;
  }
  for (const Limit& limit : growths_) add(check_growth(path, memory, *before, limit));
  return errors;
}

Error MemoryGates::runs_out(ErrorCode code, const std::string& path, const GraphMemory& memory,
                            const DeviceMemory& device, MemoryMetric metric) const {
  const AllocatorRow& run = device.allocator[expandable_ ? 1 : 0];
  const AllocatorRow& other = device.allocator[expandable_ ? 0 : 1];
  std::string message = device_name(device) + " " + verdict_text(device);
  if (metric != MemoryMetric::kReserved) {
    message += ", so there is no " + std::string(metric_name(metric)) + " peak to compare";
  }
  return {code, std::move(message),
          other.out_of_memory.empty()
              ? "with " + other.segments + " segments the step fits: set expandable_segments in --alloc-conf"
              : advice_hint(memory, device, "no recompute policy of `fxopt opt` makes the step fit"),
          where_of(path, memory, run.out_of_memory)};
}

std::vector<Error> MemoryGates::check_fit(const std::string& path, const GraphMemory& memory) const {
  std::vector<Error> errors;
  bool is_checked = memory.devices.empty();
  for (const DeviceMemory& device : memory.devices) {
    const std::optional<PeakRow> peak = device.peak(MemoryMetric::kReserved, expandable_);
    is_checked = is_checked || peak.has_value();
    if (peak.has_value() && peak->cut) {
      errors.push_back(runs_out(ErrorCode::kBudgetExceeded, path, memory, device, MemoryMetric::kReserved));
    }
  }
  if (!is_checked) {
    return {{ErrorCode::kUnknownSize, "--must-fit has nothing to check: " + std::string(kNoGpuTensors),
             std::string(kNoGpuTensorsHint), where_of(path, memory, "")}};
  }
  if (errors.empty() && memory.unknown > 0) errors.push_back(unknown_sizes(path, memory));
  return errors;
}

// Computes in integers, because 0.16 as a floating-point number is not exactly 16 %.
bool MemoryGates::is_beyond(int64_t before, int64_t after, const Limit& limit) {
  const WideSum most = limit.is_ratio ? limit.numerator : WideSum{100} * limit.denominator + limit.numerator;
  return WideSum{after} * limit.denominator * (limit.is_ratio ? 1 : 100) > WideSum{before} * most;
}

std::vector<Error> MemoryGates::check_budget(const std::string& path, const GraphMemory& memory,
                                             const Limit& limit) const {
  std::vector<Error> errors;
  bool is_checked = memory.devices.empty();
  for (const DeviceMemory& device : memory.devices) {
    const MemoryMetric metric = metric_of(device, limit.metric);
    const std::optional<PeakRow> peak = device.peak(metric, expandable_);
    if (!peak.has_value()) continue;
    is_checked = true;
    if (peak->cut) {
      errors.push_back(runs_out(ErrorCode::kBudgetExceeded, path, memory, device, metric));
    } else if (peak->bytes > limit.bytes) {
      errors.push_back({ErrorCode::kBudgetExceeded,
                        "the " + std::string(metric_name(metric)) + " peak of " + bytes_text(peak->bytes) + " on " +
                            device_name(device) + " is above the budget of " + bytes_text(limit.bytes),
                        (peak->node.empty() ? "" : "the peak is reached at this node; ") +
                            advice_hint(memory, device, "no recompute policy of `fxopt opt` lowers the peak"),
                        where_of(path, memory, peak->node)});
    }
  }
  if (!is_checked) {
    errors.push_back(lacks_metric(path, memory, *limit.metric));
  } else if (errors.empty() && memory.unknown > 0) {
    errors.push_back(unknown_sizes(path, memory));
  }
  return errors;
}

std::vector<Error> MemoryGates::check_growth(const std::string& path, const GraphMemory& memory,
                                             const GraphMemory& before, const Limit& limit) const {
  std::vector<Error> errors;
  bool is_checked = memory.devices.empty();
  if (memory.unknown > 0 || before.unknown > 0) return {unknown_sizes(path, memory)};
  for (const DeviceMemory& device : memory.devices) {
    const MemoryMetric metric = metric_of(device, limit.metric);
    const std::optional<PeakRow> peak = device.peak(metric, expandable_);
    if (!peak.has_value()) continue;
    is_checked = true;
    const auto earlier = std::find_if(before.devices.begin(), before.devices.end(),
                                      [&device](const DeviceMemory& other) { return other.device == device.device; });
    const std::optional<PeakRow> base =
        earlier == before.devices.end() ? std::nullopt : earlier->peak(metric, expandable_);
    if (!base.has_value()) {
      errors.push_back({ErrorCode::kBadBaseline,
                        "the baseline has no " + std::string(metric_name(metric)) + " peak for " + device_name(device),
                        "replace the baseline with --update-baseline", where_of(path, memory, "")});
      continue;
    }
    if (base->cut) {
      errors.push_back({ErrorCode::kBadBaseline,
                        "memory ran out when the baseline was made, so its " + std::string(metric_name(metric)) +
                            " peak is not usable",
                        "replace the baseline with --update-baseline and a larger --device-memory",
                        where_of(path, memory, "")});
      continue;
    }
    if (peak->cut) {
      errors.push_back(runs_out(ErrorCode::kGrowthExceeded, path, memory, device, metric));
      continue;
    }
    if (!is_beyond(base->bytes, peak->bytes, limit)) continue;
    errors.push_back(
        {ErrorCode::kGrowthExceeded,
         "the " + std::string(metric_name(metric)) + " peak on " + device_name(device) + " went from " +
             growth_text(base->bytes, peak->bytes) + ", above the limit of " + (limit.is_ratio ? "a ratio of " : "") +
             limit.text + "; " + grown_text(*earlier, *base, device, *peak),
         "if the growth is intended, update the baseline with --update-baseline", where_of(path, memory, peak->node)});
  }
  if (!is_checked) errors.push_back(lacks_metric(path, memory, *limit.metric));
  return errors;
}

std::vector<std::string> MemoryGates::kept_limits(const GraphMemory& memory) const {
  std::vector<std::string> lines;
  for (const DeviceMemory& device : memory.devices) {
    const std::string name = "@" + memory.graph + ", " + device_name(device) + ": ";
    for (const Limit& limit : budgets_) {
      const MemoryMetric metric = metric_of(device, limit.metric);
      const std::optional<PeakRow> peak = device.peak(metric, expandable_);
      if (!peak.has_value()) continue;
      lines.push_back(name + std::string(metric_name(metric)) + " peak " + bytes_text(peak->bytes) +
                      ", within the budget of " + bytes_text(limit.bytes));
    }
    if (flags_.must_fit && device.fit.has_value()) lines.push_back(name + verdict_text(device));
  }
  return lines;
}

std::vector<PeakGrowth> MemoryGates::compare(const std::string& path, const GraphMemory& memory) const {
  std::vector<PeakGrowth> list;
  const GraphMemory* before = growths_.empty() ? nullptr : baseline_of(path, memory.graph);
  if (before == nullptr) return list;
  for (const DeviceMemory& device : memory.devices) {
    for (const DeviceMemory& earlier : before->devices) {
      if (earlier.device != device.device) continue;
      for (const Limit& limit : growths_) {
        const MemoryMetric metric = metric_of(device, limit.metric);
        const std::optional<PeakRow> base = earlier.peak(metric, expandable_), peak = device.peak(metric, expandable_);
        if (!base.has_value() || !peak.has_value() || base->cut || peak->cut) continue;
        list.push_back({device_name(device), metric, limit.is_ratio ? "max_ratio" : "max_growth", limit.text, *base,
                        *peak, !is_beyond(base->bytes, peak->bytes, limit),
                        compare_live_sets(earlier, *base, device, *peak)});
      }
    }
  }
  return list;
}

std::vector<std::pair<MemoryMetric, int64_t>> MemoryGates::broken_budgets(const DeviceMemory& device) const {
  std::vector<std::pair<MemoryMetric, int64_t>> broken;
  for (const Limit& limit : budgets_) {
    const MemoryMetric metric = metric_of(device, limit.metric);
    const std::optional<PeakRow> peak = device.peak(metric, expandable_);
    if (peak.has_value() && (peak->cut || peak->bytes > limit.bytes)) broken.emplace_back(metric, limit.bytes);
  }
  return broken;
}

nlohmann::ordered_json MemoryGates::json() const {
  return {{"budget", flags_.budget},
          {"baseline", flags_.baseline},
          {"max_growth", flags_.max_growth},
          {"max_ratio", flags_.max_ratio},
          {"must_fit", flags_.must_fit}};
}

std::string MemoryGates::text() const {
  std::vector<std::string> words;
  for (const auto& [option, text] : {std::pair("--budget ", &flags_.budget),
                                     {"--max-growth ", &flags_.max_growth},
                                     {"--max-ratio ", &flags_.max_ratio}}) {
    if (!text->empty()) words.push_back(option + *text);
  }
  if (flags_.must_fit) words.push_back("--must-fit");
  return join(words, " ");
}

Result<nlohmann::ordered_json> MemoryGates::document(const MemoryPlan& plan, const nlohmann::ordered_json& files,
                                                     std::string& replaced) const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::error_code unknown;
  const bool is_new = !std::filesystem::exists(flags_.baseline, unknown) ||
                      (std::filesystem::file_size(flags_.baseline, unknown) == 0 && !unknown);
  if (!is_new) {
    const Result<nlohmann::ordered_json> earlier =
        read_report("--update-baseline replaces only memory reports: remove this file first if it is not needed");
    if (!earlier.ok()) return earlier.error();
    const Status comparable = check_comparable(*earlier, plan);
    if (comparable.ok()) {
      list = earlier->at("files");
    } else {
      replaced = comparable.error().message;
    }
  }
  const std::vector<std::string> given = distinct_names(flags_.inputs);
  for (const nlohmann::ordered_json& file : files) {
    const std::string path = file.at("file").get<std::string>();
    std::vector<std::string> names;
    for (const nlohmann::ordered_json& each : list) names.push_back(each.at("file").get<std::string>());
    const size_t input =
        static_cast<size_t>(std::find(flags_.inputs.begin(), flags_.inputs.end(), path) - flags_.inputs.begin());
    nlohmann::ordered_json entry = {{"file", given[input]}, {"graphs", file.at("graphs")}};
    const std::optional<size_t> found = find_file(names, path);
    if (found.has_value()) {
      list[*found] = std::move(entry);
    } else {
      list.push_back(std::move(entry));
    }
  }
  return nlohmann::ordered_json{
      {"memory_report", kDocumentVersion}, {"fxopt", kVersion}, {"options", plan.json()}, {"files", list}};
}

std::string growth_text(int64_t before, int64_t after) {
  const double growth = static_cast<double>(after) - static_cast<double>(before);
  return bytes_text(before) + " to " + bytes_text(after) +
         (before == 0 ? "" : formatted(", %+.3f %%", 100.0 * growth / static_cast<double>(before)));
}

nlohmann::ordered_json growth_json(const PeakGrowth& growth) {
  nlohmann::ordered_json grew = nlohmann::ordered_json::array();
  for (const StorageChange& change : growth.live.changes) {
    if (change.growth() <= 0 || grew.size() == kMaxListed) break;
    const StorageRow row = change.row();
    grew.push_back({{"node", row.node},
                    {"label", row.label},
                    {"module_path", row.module_path},
                    {"type", row.type},
                    {"class", row.kind},
                    {"before_bytes", change.before},
                    {"after_bytes", change.after}});
  }
  return {{"device", growth.device},
          {"metric", metric_name(growth.metric)},
          {"gate", growth.gate},
          {"limit", growth.limit},
          {"before_bytes", growth.before.bytes},
          {"after_bytes", growth.after.bytes},
          {"growth_bytes", growth.after.bytes - growth.before.bytes},
          {"before_node", growth.before.node},
          {"after_node", growth.after.node},
          {"peak_moved", growth.live.moved},
          {"holds", growth.holds},
          {"grew", std::move(grew)}};
}

}  // namespace fxopt
