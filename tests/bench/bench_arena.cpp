// fxopt_bench_arena [--alignment=N] [--effort=N] FILE...: plans allocation problems and prints how
// far each plan is above the bound, as a Markdown table. A CSV file has a header line, then lines
// of id,lower,upper,size: the item is live in [lower, upper). Any other file is a graph: each
// device of the main graph is a problem, and symbols take the values of their hints. Seconds are
// processor time. Exits with 1 if a plan has an overlap or a file cannot be read.

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/arena/arena.h"
#include "core/file.h"
#include "core/text.h"
#include "ir/alias/storages.h"
#include "ir/io/io.h"
#include "ir/memory/memory.h"
#include "ir/memory/trace.h"
#include "ir/prepare.h"
#include "tests/core/arena_overlap.h"

namespace fxopt {
namespace {

std::optional<std::vector<ArenaItem>> read_items(const std::string& path) {
  const Result<std::string> text = read_file(path);
  if (!text.ok()) return std::nullopt;
  std::istringstream lines(*text);
  std::string line;
  std::getline(lines, line);
  std::vector<ArenaItem> items;
  while (std::getline(lines, line)) {
    const std::vector<std::string_view> parts = split_list(line);
    if (parts.size() < 4) return std::nullopt;
    const std::optional<int64_t> lower = parse_int64(parts[1]);
    const std::optional<int64_t> upper = parse_int64(parts[2]);
    const std::optional<int64_t> size = parse_int64(parts[3]);
    if (!lower || !upper || !size || *lower >= *upper || *size < 0) return std::nullopt;
    items.push_back({*lower, *upper - 1, *size});
  }
  return items;
}

// A problem and its name.
struct Problem {
  std::string name;
  std::vector<ArenaItem> items;
};

// One problem per device of a graph; none if the file cannot be read.
std::vector<Problem> read_graph(const std::string& path) {
  std::vector<Problem> problems;
  const Result<std::unique_ptr<Module>> module = load_module(path);
  if (!module.ok()) return problems;
  prepare(**module);
  const Graph& graph = (*module)->main();
  const StorageMap storages(graph);
  const MemoryReport memory = analyze_memory(graph, storages);
  for (const DevicePeak& peak : memory.devices) {
    const MemoryTrace trace = trace_memory(graph, storages, memory, peak.device, {}, {});
    Problem& problem = problems.emplace_back();
    problem.name = std::filesystem::path(path).filename().string() + ", " + std::string((*module)->text(peak.device)) +
                   (memory.unknown_buffers > 0 ? ", known sizes" : "");
    for (const TraceBlock& block : trace.blocks) problem.items.push_back({block.first, block.last, block.bytes});
  }
  return problems;
}

bool bench(const Problem& problem, const ArenaOptions& options) {
  const std::vector<ArenaItem>* items = &problem.items;
  const std::clock_t start = std::clock();
  const std::optional<ArenaPlan> plan = plan_arena(*items, options);
  const double seconds = static_cast<double>(std::clock() - start) / static_cast<double>(CLOCKS_PER_SEC);
  if (!plan || find_arena_overlap(*items, plan->offsets)) {
    std::cerr << "no plan, or one with an overlap, for " << problem.name << "\n";
    return false;
  }
  const auto over = static_cast<double>(plan->bytes - plan->lower_bound);
  std::cout << "| " << problem.name << " | " << items->size() << " | " << plan->unaligned_bound << " | "
            << plan->lower_bound << " | " << plan->bytes << " | " << std::fixed << std::setprecision(3)
            << 100 * over / static_cast<double>(std::max(plan->lower_bound, int64_t{1})) << " | " << plan->method
            << (plan->optimal ? ", optimal" : "") << " | " << std::setprecision(2) << seconds << " |" << std::endl;
  return true;
}

bool bench(const std::string& path, const ArenaOptions& options) {
  std::vector<Problem> problems;
  if (path.ends_with(".csv")) {
    std::optional<std::vector<ArenaItem>> items = read_items(path);
    if (items) problems.push_back({std::filesystem::path(path).filename().string(), std::move(*items)});
  } else {
    problems = read_graph(path);
  }
  if (problems.empty()) {
    std::cerr << "cannot read " << path << " as lines of id,lower,upper,size, or as a graph\n";
    return false;
  }
  return std::all_of(problems.begin(), problems.end(),
                     [&options](const Problem& problem) { return bench(problem, options); });
}

int run(const std::vector<std::string>& arguments) {
  ArenaOptions options;
  std::vector<std::string> files;
  for (const std::string& argument : arguments) {
    const std::optional<int64_t> number = parse_int64(argument.substr(argument.find('=') + 1));
    if (argument.rfind("--alignment=", 0) == 0 && number.value_or(0) > 0) {
      options.alignment = *number;
    } else if (argument.rfind("--effort=", 0) == 0 && number.value_or(-1) >= 0) {
      options.effort = *number;
    } else {
      files.push_back(argument);
    }
  }
  std::cout << "| instance | items | bound, unaligned | bound | bytes | over bound, % | method | seconds |\n"
               "|---|---:|---:|---:|---:|---:|---|---:|\n";
  return std::all_of(files.begin(), files.end(), [&](const std::string& file) { return bench(file, options); }) ? 0 : 1;
}

}  // namespace
}  // namespace fxopt

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) {
    std::cerr << "usage: fxopt_bench_arena [--alignment=N] [--effort=N] FILE...\n";
    return 2;
  }
  return fxopt::run(arguments);
}
