// fxopt explain: why a value is live, and the effect of recomputing it.

#include "cli/report/explain.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/files.h"
#include "cli/memory_options.h"
#include "ir/memory/footprint.h"
#include "ir/step/origins.h"
#include "passes/recompute/remat.h"

namespace fxopt {
namespace {

struct ExplainFlags {
  std::string input;
  std::string node;
  std::string graph;
  MemoryFlags memory;
};

struct Found {
  const Graph* graph = nullptr;
  NodeId node;
};

Result<Found> find_node(const Module& module, const ExplainFlags& flags) {
  const Result<std::vector<const Graph*>> graphs = select_graphs(module, flags.graph, shown_input(flags.input));
  if (!graphs.ok()) return graphs.error();
  const std::string name = bare_name(flags.node, '%');
  const StringId id = module.strings.find(name);
  std::vector<std::string_view> names;
  for (const Graph* graph : *graphs) {
    const NodeId node = id.is_valid() ? graph->find(id) : NodeId();
    if (node.is_valid()) return Found{graph, node};
    for (const NodeId each : graph->nodes()) names.push_back(graph->name_of(each));
  }
  return unknown_node(name, names, shown_input(flags.input));
}

// A node that `remat` copied into backward.
struct Copy {
  std::string name;
  Cost work;
};

// The result of running the pass `remat` on the step.
struct Trial {
  std::vector<DevicePeaks> peaks;
  std::vector<Copy> copies;  // in schedule order

  // Returns the copies whose names `other` lacks.
  std::vector<Copy> beside(const Trial& other) const {
    std::set<std::string_view> known;
    for (const Copy& copy : other.copies) known.insert(copy.name);
    std::vector<Copy> list;
    for (const Copy& copy : copies) {
      if (!known.contains(copy.name)) list.push_back(copy);
    }
    return list;
  }
};

// Returns the forward nodes that produce the storages of `node`. These nodes are tagged instead of
// `node`, because tagging a view would change nothing.
std::vector<NodeId> makers(const Footprint& footprint, NodeId node) {
  std::vector<NodeId> nodes;
  for (const BufferId id : footprint.storages.buffers(node)) {
    if (!id.is_valid() || footprint.storages.buffer(id).source != BufferSource::kNode) continue;
    const NodeId producer = footprint.storages.buffer(id).producer;
    if (footprint.phases.is_backward(producer) || std::find(nodes.begin(), nodes.end(), producer) != nodes.end()) {
      continue;
    }
    nodes.push_back(producer);
  }
  return nodes;
}

class Explain {
 public:
  Explain(Console& console, const ExplainFlags& flags, const MemoryPlan& plan)
      : console_(console), flags_(flags), plan_(plan) {}

  void run() {
    const std::unique_ptr<Module> module = import_input(console_, flags_.input);
    if (module == nullptr) return;
    const Result<MemoryView> view = plan_.view(*module, flags_.input);
    if (!view.ok()) return console_.error(view.error());
    const Result<Found> found = find_node(*module, flags_);
    if (!found.ok()) return console_.error(found.error());
    std::vector<NodeId> tried;
    std::optional<Trial> as_it_is;
    Explanation explanation = explain(*found, *view, tried, as_it_is);
    if (!tried.empty()) {
      const Result<Trial> before =
          as_it_is.has_value() ? Result<Trial>(*std::move(as_it_is)) : run_trial(*module->clone(), *found, *view);
      try_it(*module, *found, *view, tried, before, explanation);
    }
    const bool has_seconds = view->costs.has_seconds();
    print_explanation(console_.product(), explanation, has_seconds);
    console_.result()["explanation"] = explanation_json(explanation, has_seconds);
  }

 private:
  // If backward uses the value, sets `tried` to the nodes whose tags decide whether it is saved. If
  // no node has a tag, sets `as_it_is` to the measured step, because remat would not change it.
  Explanation explain(const Found& found, const MemoryView& view, std::vector<NodeId>& tried,
                      std::optional<Trial>& as_it_is) const {
    const Footprint footprint = measure_logged(console_, flags_.input, *found.graph, view.measure);
    warn_of_memory(console_, flags_.input, footprint, view);
    Explanation explanation = explain_node(footprint, found.node);
    if (!explanation.decision.empty()) tried = makers(footprint, found.node);
    if (!tried.empty() && !has_tags(*found.graph)) as_it_is = trial_of(footprint, view);
    return explanation;
  }

  static bool has_tags(const Graph& graph) {
    return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                       [&graph](NodeId node) { return graph[node].tag != Tag::kNone; });
  }

  // Changes `module` instead of a copy, so at most two copies of a large module are in memory.
  void try_it(Module& module, const Found& found, const MemoryView& view, const std::vector<NodeId>& nodes,
              const Result<Trial>& before, Explanation& explanation) const {
    WhatIf what_if;
    what_if.has_carried_out = has_tags(*found.graph);
    what_if.tag = explanation.is_recomputed ? Tag::kMustSave : Tag::kMustRecompute;
    Graph& graph = module.graph(module.find_graph(found.graph->name()));
    for (const NodeId node : nodes) graph[node].tag = what_if.tag;
    const Result<Trial> after = before.ok() ? run_trial(module, found, view) : before;
    if (!after.ok()) {
      what_if.refusal = after.error().message;
    } else {
      compare(*before, *after, what_if);
    }
    explanation.what_if = std::move(what_if);
  }

  // Runs remat on the module, which contains the graph of `found` or a copy of this graph. Fails
  // with the errors of remat().
  Result<Trial> run_trial(Module& module, const Found& found, const MemoryView& view) const {
    Graph& graph = module.graph(module.find_graph(found.graph->name()));
    PassContext context(module);
    const Result<PassResult> done = remat(graph, RematOptions(), context);
    if (!done.ok()) return done.error();
    return trial_of(measure(graph, view.measure), view);
  }

  Trial trial_of(const Footprint& footprint, const MemoryView& view) const {
    const Graph& graph = *footprint.graph;
    Trial trial;
    trial.peaks = peaks_of(footprint, plan_.expandable());
    CostTable costs(graph, view.costs);
    for (const NodeId node : graph.nodes()) {
      if (is_recomputed(graph, node)) trial.copies.push_back({std::string(graph.name_of(node)), costs.of(node)});
    }
    return trial;
  }

  void compare(const Trial& before, const Trial& after, WhatIf& what_if) const {
    const bool saves = what_if.tag == Tag::kMustSave;
    for (const Copy& copy : saves ? before.beside(after) : after.beside(before)) {
      what_if.copies.push_back(copy.name);
      what_if.work.add(copy.work);
    }
    what_if.expandable = plan_.expandable();
    what_if.before = before.peaks;
    what_if.after = after.peaks;
  }

  Console& console_;
  const ExplainFlags& flags_;
  const MemoryPlan& plan_;
};

void run_explain(Console& console, const ExplainFlags& flags) {
  const Result<MemoryPlan> plan = MemoryPlan::make(flags.memory);
  if (!plan.ok()) return console.error(plan.error());
  console.result() = {{"file", shown_input(flags.input)}, {"options", plan->json()}};
  Explain(console, flags, *plan).run();
}

}  // namespace

CommandBody declare_explain(Options options) {
  const std::shared_ptr<ExplainFlags> flags = std::make_shared<ExplainFlags>();
  options.add("IN", flags->input, "a graph file; '-' is standard input").type("IN").required();
  options.add("NODE", flags->node, "a node's name, with or without '%'").type("NAME").required();
  options.add("--graph", flags->graph, "search only this graph (default: the first graph that has the node)")
      .type("NAME");
  declare_memory_flags(options, flags->memory);
  return [flags](Console& console) { run_explain(console, *flags); };
}

}  // namespace fxopt
