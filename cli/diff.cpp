// fxopt diff: reports the changes between two graphs.

#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/files.h"
#include "cli/memory_options.h"
#include "cli/print/json.h"
#include "cli/report/graph_diff.h"
#include "cli/step.h"

namespace fxopt {
namespace {

struct DiffFlags {
  std::string before, after;
  std::vector<std::string> more;  // further files, if --step is given
  bool step = false;
  std::string graph;
  MemoryFlags memory;
};

// The files of each side. Each side has one file. With --step, each side has half of all files.
struct DiffSides {
  std::vector<std::string> before, after;
};

Result<DiffSides> sides_of(const DiffFlags& flags) {
  std::vector<std::string> all = {flags.before, flags.after};
  all.insert(all.end(), flags.more.begin(), flags.more.end());
  if (const Status inputs = check_inputs(all); !inputs.ok()) return inputs.error();
  if (!flags.step && all.size() > 2) {
    return usage_error(std::to_string(all.size()) + " files given, but only two can be compared",
                       "if several files form one step, add --step and list the files of the first step first");
  }
  if (all.size() % 2 != 0) {
    return usage_error(
        std::to_string(all.size()) + " files cannot be divided into two steps with the same number of files",
        "list all files of the first step, then all files of the second step; `fxopt opt --step --stop-after 0` merges "
        "several files into one");
  }
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  return DiffSides{{all.begin(), middle}, {middle, all.end()}};
}

// Returns the facts of each graph of one side. With --step, returns the facts of the step. The
// result is empty after an error.
std::vector<GraphFacts> facts_of(Console& console, const DiffFlags& flags, const MemoryPlan& plan,
                                 const std::vector<std::string>& files, const std::shared_ptr<Interner>& texts) {
  std::vector<GraphFacts> facts;
  const std::string& path = files.front();
  std::optional<ComposedStep> step =
      flags.step ? import_step(console, load_parts(console, files), files) : std::optional<ComposedStep>();
  const std::unique_ptr<Module> module = !flags.step        ? import_input(console, path)
                                         : step.has_value() ? std::move(step->module)
                                                            : nullptr;
  if (module == nullptr) return facts;
  Result<MemoryView> view = plan.view(*module, path);
  if (!console.is_ok(view)) return facts;
  Result<std::vector<const Graph*>> graphs = step.has_value() ? std::vector<const Graph*>{step->graph}
                                                              : select_graphs(*module, flags.graph, shown_input(path));
  if (!console.is_ok(graphs)) return facts;
  view->others = true;
  view->texts = texts;
  view->candidates = false;  // recompute candidates are not compared
  for (const Graph* graph : *graphs) {
    const Footprint footprint = measure_logged(console, path, *graph, view->measure);
    facts.push_back(graph_facts(footprint, *view));
    warn_of_memory(console, path, footprint, *view);
  }
  return facts;
}

using GraphsByName = std::unordered_map<std::string_view, const GraphFacts*>;

// If several graphs share a name, the first graph is used. The result is looked up, never iterated.
GraphsByName by_name(const std::vector<GraphFacts>& facts) {
  GraphsByName found;
  for (const GraphFacts& side : facts) found.try_emplace(side.graph, &side);
  return found;
}

void warn_of_one_sided(Console& console, const std::string& path, const std::string& graph) {
  console.warning("one-sided", where_in(shown_input(path), graph),
                  "the other file has no graph of this name, so this graph is not compared; with --step, all graphs of "
                  "a file are compared as one step");
}

void run_diff(Console& console, const DiffFlags& flags) {
  const Result<DiffSides> sides = sides_of(flags);
  if (!sides.ok()) return console.error(sides.error());
  const Result<MemoryPlan> plan = MemoryPlan::make(flags.memory);
  if (!plan.ok()) return console.error(plan.error());
  console.result() = {
      {"options", plan->json()}, {"before", shown_inputs(sides->before)}, {"after", shown_inputs(sides->after)}};
  // Both sides share the interner, because most of their texts are equal.
  const std::shared_ptr<Interner> texts = std::make_shared<Interner>();
  const std::vector<GraphFacts> before = facts_of(console, flags, *plan, sides->before, texts);
  const std::vector<GraphFacts> after = facts_of(console, flags, *plan, sides->after, texts);
  if (console.num_errors() > 0) return;
  nlohmann::ordered_json graphs = nlohmann::ordered_json::array();
  const auto compare = [&](const GraphFacts& left, const GraphFacts& right) {
    print_graph_diff(console.product(), left, right, flags.memory.top);
    graphs.push_back(graph_diff_json(left, right));
  };
  if (before.size() == 1 && after.size() == 1) {
    compare(before.front(), after.front());  // even if their names differ
  } else {
    const GraphsByName names_before = by_name(before), names_after = by_name(after);
    for (const GraphFacts& left : before) {
      const auto right = names_after.find(left.graph);
      right == names_after.end() ? warn_of_one_sided(console, flags.before, left.graph) : compare(left, *right->second);
    }
    for (const GraphFacts& right : after) {
      if (!names_before.contains(right.graph)) warn_of_one_sided(console, flags.after, right.graph);
    }
  }
  console.result()["graphs"] = std::move(graphs);
}

}  // namespace

CommandBody declare_diff(Options options) {
  const std::shared_ptr<DiffFlags> flags = std::make_shared<DiffFlags>();
  options.add("BEFORE", flags->before, "a graph file; '-' is standard input").type("IN").required();
  options.add("AFTER", flags->after, "a second graph file").type("IN").required();
  options
      .add(
          "MORE", flags->more,
          "with --step: more files. List all files of the first step, then the same number of files of the second step")
      .type("IN");
  const Option graph =
      options.add("--graph", flags->graph, "compare only this graph (default: all graphs that no other graph calls)")
          .type("NAME");
  options.flag("--step", flags->step, kStepHelp).excludes(graph);
  declare_memory_flags(options, flags->memory);
  return [flags](Console& console) { run_diff(console, *flags); };
}

}  // namespace fxopt
