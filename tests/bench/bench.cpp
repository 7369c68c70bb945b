// fxopt_bench [--repeat N] [--processor-time] [--passes PIPELINE] --out FILE GRAPH...: times every
// stage of a run on each graph, on one thread. A time is the median of N runs (default 5), each on
// a freshly loaded graph. Prints a Markdown table with the exponent of growth between the first and
// the last graph. Order the graphs by size: the process's peak resident memory is read after each.
// On a shared machine, processor time is more reliable than elapsed time.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <utility>
#include <vector>

#include "ir/io/io.h"
#include "ir/memory/memory.h"
#include "passes/pipeline/pipeline.h"

namespace fxopt {
namespace {

constexpr std::string_view kPipeline = "canonicalize,cse,sac{policy=full},remat,dce";
constexpr double kMaxFileBytes = 2147483647.0;  // the binary form's limit

struct Options {
  int repeat = 5;
  bool processor_time = false;
  std::string passes{kPipeline};
  std::string out;
  std::vector<std::string> graphs;
};

struct Stage {
  std::string name;
  std::vector<double> seconds;  // one per run
};

struct Measured {
  std::vector<Stage> stages;
  size_t nodes = 0;
  size_t nodes_after = 0;
  size_t recomputed = 0;
  uintmax_t bytes = 0;
  double peak_rss = 0;  // bytes

  void add(const std::string& name, double seconds) {
    const auto found =
        std::find_if(stages.begin(), stages.end(), [&name](const Stage& stage) { return stage.name == name; });
    Stage& stage = found != stages.end() ? *found : stages.emplace_back(Stage{name, {}});
    stage.seconds.push_back(seconds);
  }
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Clock {
 public:
  explicit Clock(bool processor_time) : processor_time_(processor_time), start_(now()) {}

  // Seconds since the last call.
  double lap() {
    const double end = now();
    return end - std::exchange(start_, end);
  }

 private:
  double now() const {
    if (processor_time_) return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  bool processor_time_;
  double start_;
};

double peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024.0;
}

size_t count_recomputed(const Graph& graph) {
  size_t count = 0;
  for (const NodeId id : graph.nodes()) {
    const NodeExtra* extra = graph.extra(id);
    if (extra == nullptr) continue;
    count += std::any_of(extra->origins.begin(), extra->origins.end(),
                         [](const Origin& origin) { return origin.kind == OriginKind::kRecomputed; })
                 ? 1U
                 : 0U;
  }
  return count;
}

Status run_once(const std::string& path, const Options& options, Measured& measured) {
  Clock total(options.processor_time);
  Clock clock(options.processor_time);
  Result<std::unique_ptr<Module>> loaded = load_module(path);
  if (!loaded.ok()) return std::move(loaded).error();
  measured.add("load", clock.lap());
  Module& module = **loaded;
  measured.nodes = module.main().num_nodes();

  Result<Pipeline> pipeline = parse_pipeline(options.passes);
  if (!pipeline.ok()) return std::move(pipeline).error();
  RunOptions run_options;
  run_options.verify = run_options.check_hash = false;
  run_options.numerics = Numerics::kReordersReductions;
  run_options.observer = [&](size_t, const PipelineStep& step, const StepReport&, const Module&) {
    measured.add(step.text, clock.lap());
  };
  clock.lap();
  Result<RunReport> report = run_pipeline(module, *pipeline, run_options);
  if (!report.ok()) return std::move(report).error();

  clock.lap();
  const StorageMap storages(module.main());
  const MemoryReport memory = analyze_memory(module.main(), storages);
  measured.add("mem", clock.lap());
  if (memory.peak_bytes() == 0) std::cerr << path << ": no storage has a size\n";

  clock.lap();
  Status saved = save_module(module, options.out, Format::kPb);
  if (!saved.ok()) return saved;
  measured.add("save", clock.lap());
  measured.add("total", total.lap());
  measured.nodes_after = module.main().num_nodes();
  measured.recomputed = count_recomputed(module.main());
  return ok_status();
}

Result<Measured> measure(const std::string& path, const Options& options) {
  Measured measured;
  measured.bytes = std::filesystem::file_size(path);
  for (int i = 0; i < options.repeat; ++i) {
    Status done = run_once(path, options, measured);
    if (!done.ok()) return std::move(done).error();
  }
  measured.peak_rss = peak_resident_bytes();
  return measured;
}

// ---- the table

void print_row(const std::string& name, const std::vector<std::string>& cells) {
  std::cout << "| " << name << " |";
  for (const std::string& cell : cells) std::cout << " " << cell << " |";
  std::cout << "\n";
}

std::string format(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), pattern, value);
  return text;
}

std::string exponent(double first, double last, const std::vector<Measured>& all) {
  const double nodes = static_cast<double>(all.back().nodes) / static_cast<double>(all.front().nodes);
  return all.size() > 1 ? format("%.2f", std::log(last / first) / std::log(nodes)) : "";
}

template <class Cell>
void print_line(const std::string& name, const std::vector<Measured>& all, Cell cell) {
  std::vector<std::string> cells;
  for (const Measured& measured : all) cells.push_back(cell(measured));
  cells.emplace_back();
  print_row(name, cells);
}

void print_table(const std::vector<Measured>& all) {
  print_line("nodes", all, [](const Measured& m) { return std::to_string(m.nodes); });
  std::cout << "|---|";
  for (size_t i = 0; i <= all.size(); ++i) std::cout << "---:|";
  std::cout << "\n";
  for (size_t stage = 0; stage < all.front().stages.size(); ++stage) {
    std::vector<std::string> cells;
    for (const Measured& measured : all) cells.push_back(format("%.3f s", median(measured.stages[stage].seconds)));
    cells.push_back(exponent(median(all.front().stages[stage].seconds), median(all.back().stages[stage].seconds), all));
    print_row(all.front().stages[stage].name, cells);
  }
  print_line("peak resident memory", all, [](const Measured& m) { return format("%.2f GB", m.peak_rss / 1e9); });
  print_line("nodes after", all, [](const Measured& m) { return std::to_string(m.nodes_after); });
  print_line("recomputed nodes", all, [](const Measured& m) { return std::to_string(m.recomputed); });
  print_line("recomputed share of the nodes before", all, [](const Measured& m) {
    return format("%.1f %%", 100.0 * static_cast<double>(m.recomputed) / static_cast<double>(m.nodes));
  });
  print_line("bytes per node on disk", all, [](const Measured& m) {
    return format("%.1f", static_cast<double>(m.bytes) / static_cast<double>(m.nodes));
  });
  print_line("nodes that reach protobuf's 2 GiB", all, [](const Measured& m) {
    return format("%.1f million", kMaxFileBytes / 1e6 / (static_cast<double>(m.bytes) / static_cast<double>(m.nodes)));
  });
}

Options read_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg == "--repeat" && i + 1 < argc) {
      options.repeat = std::atoi(argv[++i]);
    } else if (arg == "--processor-time") {
      options.processor_time = true;
    } else if (arg == "--passes" && i + 1 < argc) {
      options.passes = argv[++i];
    } else if (arg == "--out" && i + 1 < argc) {
      options.out = argv[++i];
    } else {
      options.graphs.emplace_back(arg);
    }
  }
  return options;
}

int run(const Options& options) {
  std::vector<Measured> all;
  for (const std::string& graph : options.graphs) {
    Result<Measured> measured = measure(graph, options);
    if (!measured.ok()) {
      std::cerr << format_error(measured.error()) << "\n";
      return static_cast<int>(error_info(measured.error().code).exit);
    }
    all.push_back(std::move(*measured));
  }
  print_table(all);
  std::cerr << "pipeline: " << options.passes << "; " << (options.processor_time ? "processor" : "elapsed")
            << " time, medians of " << options.repeat << " runs; last column: exponent of growth\n";
  return 0;
}

}  // namespace
}  // namespace fxopt

int main(int argc, char** argv) {
  const fxopt::Options options = fxopt::read_options(argc, argv);
  if (options.repeat < 1 || options.out.empty() || options.graphs.empty()) {
    std::cerr << "usage: fxopt_bench [--repeat N] [--processor-time] --out FILE GRAPH...\n";
    return 2;
  }
  return fxopt::run(options);
}
