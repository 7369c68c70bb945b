// fxopt ranks: checks that the collectives issued by the ranks of a job match.

#include "ir/ranks/ranks.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/files.h"
#include "cli/print/json.h"
#include "cli/print/json_list.h"
#include "cli/print/table.h"
#include "core/text.h"

namespace fxopt {
namespace {

constexpr size_t kMaxRows = 32;  // rows for groups in the table
constexpr size_t kMaxErrors = 20;

std::string_view kind_word(RankConflict::Kind kind) {
  constexpr std::string_view kWords[] = {"groups", "calls", "length", "pair", "origin", "circle", "discipline"};
  return kWords[static_cast<size_t>(kind)];
}

// Reads the traces. If a file records no rank, its rank is its position among the inputs.
std::vector<RankTrace> read_traces(Console& console, const std::vector<std::string>& inputs) {
  std::vector<RankTrace> traces;
  std::map<int64_t, std::string> files;
  size_t unsaid = 0;
  for_each_input(console, inputs, [&](size_t i, nlohmann::ordered_json& file) {
    const std::string shown = shown_input(inputs[i]);
    const std::unique_ptr<Module> module = import_input(console, inputs[i]);
    if (module == nullptr) return;
    const bool is_said = module->rank.has_value() && module->rank->rank.has_value();
    unsaid += is_said ? 0 : 1;
    const int64_t rank = is_said ? *module->rank->rank : static_cast<int64_t>(i);
    file["rank"] = rank;
    if (const auto [found, is_new] = files.emplace(rank, shown); !is_new) {
      return console.error({ErrorCode::kBadValue,
                            "this file and '" + found->second + "' both have rank " + std::to_string(rank),
                            "give one file for each rank", where_in(shown)});
    }
    traces.push_back(trace_rank(*module, rank, shown));
    file["calls"] = traces.back().calls.size();
    file["name_of_calls"] = name_of_calls(traces.back());
  });
  if (unsaid > 0 && inputs.size() > 1) {
    console.warning(
        "rank-by-place", {},
        count_text(unsaid, "file") + " of " + std::to_string(inputs.size()) +
            " without a recorded rank; the rank of such a file is its position on the command line, counted from 0");
  }
  std::sort(traces.begin(), traces.end(), [](const RankTrace& a, const RankTrace& b) { return a.rank < b.rank; });
  return traces;
}

void print_groups(std::ostream& out, const RankReport& report) {
  Table table({Align::kLeft, Align::kRight, Align::kRight, Align::kLeft, Align::kLeft});
  table.add({"group", "calls", "ranks", "", "ranks without a file"});
  size_t rows = 0;
  for (const RankReport::Row& row : report.rows) {
    if (++rows > kMaxRows) continue;
    table.add({row.group.uid, std::to_string(row.calls), std::to_string(row.group.ranks.size()),
               format_numbers(row.group.ranks), format_numbers(row.missing)});
  }
  table.print(out);
  if (rows > kMaxRows) out << "  " << rows - kMaxRows << " more groups; --json lists all\n";
}

// Returns the first words of the result. Calls are compared only on groups with several files.
std::string verdict_text(const RankReport& report) {
  if (!report.conflicts.empty()) return "the collectives do not match";
  if (report.rows.empty()) return "nothing to compare";
  const bool is_compared = std::ranges::any_of(
      report.rows, [](const RankReport::Row& row) { return row.missing.size() + 1 < row.group.ranks.size(); });
  return is_compared ? "ok" : "only waits were checked, because no process group has two of the given ranks";
}

void add_json(nlohmann::ordered_json& result, const RankReport& report) {
  using Json = nlohmann::ordered_json;
  result["groups"] = json_list(report.rows, [](const RankReport::Row& row) -> Json {
    return {{"uid", row.group.uid}, {"ranks", row.group.ranks}, {"calls", row.calls}, {"without_file", row.missing}};
  });
  result["conflicts"] = json_list(report.conflicts, [](const RankConflict& item) -> Json {
    return {{"kind", kind_word(item.kind)},
            {"text", item.text},
            {"file", item.file},
            {"graph", item.graph},
            {"node", item.node}};
  });
}

void say_conflicts(Console& console, const RankReport& report) {
  for (size_t i = 0; i < std::min(report.conflicts.size(), kMaxErrors); ++i) {
    const RankConflict& item = report.conflicts[i];
    console.error({ErrorCode::kRanksDiverge, item.text, "", where_in(item.file, item.graph, item.node)});
  }
}

// Prints warnings about calls and ranks that were not compared.
void say_limits(Console& console, const std::vector<RankTrace>& traces, const RankReport& report) {
  size_t unknown = 0, hidden = 0;
  for (const RankTrace& trace : traces) {
    unknown += trace.unknown;
    hidden += trace.hidden;
  }
  if (unknown > 0) {
    console.warning("unlisted-groups", {},
                    count_text(unknown, "call") +
                        " not compared: the process group is unknown, or the file does not list the group");
  }
  if (hidden > 0) {
    console.warning("hidden-calls", {},
                    count_text(hidden, "call") + " not compared: calls inside subgraphs are not examined");
  }
  std::set<int64_t> missing;
  for (const RankReport::Row& row : report.rows) missing.insert(row.missing.begin(), row.missing.end());
  if (missing.empty()) return;
  const std::vector<int64_t> ranks(missing.begin(), missing.end());
  console.warning("without-file", {},
                  count_text(ranks.size(), "rank") +
                      " of the process groups not compared, because no file is given: " + format_numbers(ranks));
}

}  // namespace

CommandBody declare_ranks(Options options) {
  const std::shared_ptr<std::vector<std::string>> inputs = std::make_shared<std::vector<std::string>>();
  options.add("IN", *inputs, "graph files, one for each rank; '-' is standard input").type("IN").required();
  return [inputs](Console& console) {
    console.result()["files"] = nlohmann::ordered_json::array();
    if (!console.is_ok(check_inputs(*inputs))) return;
    const std::vector<RankTrace> traces = read_traces(console, *inputs);
    if (traces.size() != inputs->size()) return;
    const RankReport report = compare_ranks(traces);
    const std::string who =
        traces.size() == 1 ? "rank " + std::to_string(traces.front().rank) : count_text(traces.size(), "rank");
    size_t calls = 0;
    for (const RankTrace& trace : traces) calls += trace.calls.size();
    console.result()["verdict"] = report.conflicts.empty() ? "ok" : "diverge";
    console.product() << who << ": " << verdict_text(report) << ", " << count_text(calls, "call") << " on "
                      << count_text(report.rows.size(), "group") << '\n';
    print_groups(console.product(), report);
    add_json(console.result(), report);
    say_limits(console, traces, report);
    say_conflicts(console, report);
  };
}

}  // namespace fxopt
