// fxopt explain: why a value is live, and what recomputing it would change.

#include "cli/report/explain.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/files.h"
#include "cli/memory_options.h"
#include "core/check.h"
#include "ir/analysis/origins.h"
#include "ir/analysis/phases.h"
#include "ir/analysis/storages.h"
#include "ir/io/io.h"
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
  Error error{ErrorCode::kUnknownNode,
              "there is no node '" + name + "'",
              suggestion(name, names, "`fxopt show` prints the names"),
              {}};
  error.where.file = shown_input(flags.input);
  return error;
}

// The graph behind remat, with a tag of our own on some nodes.
class Trial {
 public:
  // Errors: those of remat().
  static Result<Trial> run(const Module& module, StringId graph_name, const std::vector<std::string>& nodes, Tag tag) {
    Trial trial;
    Result<std::unique_ptr<Module>> copy = parse_text(print_text(module), "trial");
    FXOPT_CHECK(copy.ok(), "a graph that was printed does not parse");
    trial.module_ = std::move(*copy);
    trial.graph_ =
        &trial.module_->graph(trial.module_->find_graph(trial.module_->strings.find(module.text(graph_name))));
    Graph& graph = *trial.graph_;
    for (const std::string& name : nodes) graph[graph.find(trial.module_->strings.find(name))].tag = tag;
    const Result<PassResult> done = remat(graph, RematOptions());
    if (!done.ok()) return done.error();
    return trial;
  }

  const Graph& graph() const { return *graph_; }
  Module& module() { return *module_; }

  // The copies whose names the other graph does not have, in schedule order.
  std::vector<NodeId> copies_beside(const Graph& other) const {
    std::set<std::string_view> known;
    for (const NodeId node : other.nodes()) known.insert(other.name_of(node));
    std::vector<NodeId> copies;
    for (const NodeId node : graph_->nodes()) {
      if (is_recomputed(*graph_, node) && !known.contains(graph_->name_of(node))) copies.push_back(node);
    }
    return copies;
  }

 private:
  std::unique_ptr<Module> module_;
  Graph* graph_ = nullptr;
};

// The forward nodes that make the storages of the node: tagging a view would change nothing.
std::vector<std::string> makers(const Graph& graph, NodeId node) {
  const StorageMap storages(graph);
  const PhaseMap phases = resolve_phases(graph);
  std::vector<std::string> names;
  for (const BufferId id : storages.buffers(node)) {
    if (!id.is_valid() || storages.buffer(id).source != BufferSource::kNode) continue;
    const NodeId producer = storages.buffer(id).producer;
    std::string name(graph.name_of(producer));
    if (phases.is_backward(producer) || std::find(names.begin(), names.end(), name) != names.end()) continue;
    names.push_back(std::move(name));
  }
  return names;
}

class Explain {
 public:
  Explain(Console& console, const ExplainFlags& flags, const MemoryPlan& plan)
      : console_(console), flags_(flags), plan_(plan) {}

  void run() {
    const std::unique_ptr<Module> module = load_input(console_, flags_.input);
    if (module == nullptr || !is_valid_input(console_, *module, flags_.input)) return;
    prepare_for_memory(*module);
    const Result<MemoryView> view = plan_.view(*module, flags_.input);
    if (!view.ok()) return console_.error(view.error());
    const Result<Found> found = find_node(*module, flags_);
    if (!found.ok()) return console_.error(found.error());
    const GraphMemory memory = describe_memory(*found->graph, *view);
    warn_of_memory(console_, flags_.input, memory);
    Explanation explanation = explain_node(*found->graph, found->node, *view, memory);
    if (!explanation.decision.empty()) try_it(*module, *found, explanation);
    const bool has_seconds = plan_.profile().bandwidth.has_value();
    print_explanation(console_.product(), explanation, has_seconds);
    console_.result()["explanation"] = explanation_json(explanation, has_seconds);
  }

 private:
  void try_it(const Module& module, const Found& found, Explanation& explanation) {
    const std::vector<std::string> names = makers(*found.graph, found.node);
    if (names.empty()) return;
    WhatIf what_if;
    what_if.tag = explanation.is_recomputed ? Tag::kMustSave : Tag::kMustRecompute;
    Result<Trial> before = Trial::run(module, found.graph->name(), {}, Tag::kNone);
    if (!before.ok()) {
      what_if.refusal = before.error().message;
      explanation.what_if = std::move(what_if);
      return;
    }
    Result<Trial> after = Trial::run(module, found.graph->name(), names, what_if.tag);
    if (!after.ok()) {
      what_if.refusal = after.error().message;
    } else {
      compare(*before, *after, what_if);
    }
    explanation.what_if = std::move(what_if);
  }

  void compare(Trial& before, Trial& after, WhatIf& what_if) const {
    Trial& with_copies = what_if.tag == Tag::kMustSave ? before : after;
    const Trial& without = what_if.tag == Tag::kMustSave ? after : before;
    const Result<MemoryView> view = plan_.view(with_copies.module(), flags_.input);
    const Result<MemoryView> view_before = plan_.view(before.module(), flags_.input);
    const Result<MemoryView> view_after = plan_.view(after.module(), flags_.input);
    FXOPT_CHECK(view.ok() && view_before.ok() && view_after.ok(), "symbols were bound before");
    const std::vector<NodeId> copies = with_copies.copies_beside(without.graph());
    for (const NodeId copy : copies) what_if.copies.emplace_back(with_copies.graph().name_of(copy));
    what_if.work = WorkModel(with_copies.graph(), plan_.profile(), view->options.symbols).of(copies);
    what_if.expandable = plan_.expandable();
    what_if.before = describe_memory(before.graph(), *view_before);
    what_if.after = describe_memory(after.graph(), *view_after);
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

CommandBody declare_explain(CLI::App& app) {
  const std::shared_ptr<ExplainFlags> flags = std::make_shared<ExplainFlags>();
  app.add_option("IN", flags->input, "a graph file; '-' is standard input")->type_name("IN")->required();
  app.add_option("NODE", flags->node, "a node's name, with or without '%'")->type_name("NAME")->required();
  app.add_option("--graph", flags->graph, "of this graph (default: the first that has the node)")->type_name("NAME");
  declare_memory_flags(app, flags->memory);
  return [flags](Console& console) { run_explain(console, *flags); };
}

}  // namespace fxopt
