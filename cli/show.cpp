// fxopt show: a graph in text, some of its nodes, or what it is made of.

#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/files.h"
#include "cli/report/json.h"
#include "cli/report/nodes.h"
#include "cli/report/summary.h"
#include "ir/analysis/phases.h"
#include "ir/check/verify.h"

namespace fxopt {
namespace {

struct ShowFlags {
  std::vector<std::string> inputs;
  std::string graph;
  std::vector<std::string> nodes;
  std::string phase;
  std::string module_prefix;
  bool summary = false;

  bool has_filter() const { return !phase.empty() || !module_prefix.empty(); }
};

Result<std::optional<Phase>> parse_phase(const std::string& text) {
  if (text.empty()) return std::optional<Phase>();
  const std::optional<Phase> phase = parse_enum<Phase>(text);
  if (phase.has_value()) return phase;
  std::vector<std::string_view> names;
  for (const EnumName<Phase>& entry : EnumNames<Phase>::kAll) names.push_back(entry.name);
  return Error{ErrorCode::kBadOptionValue,
               "'" + text + "' is not a phase",
               suggestion(text, names, "the phases are forward, loss, backward, optimizer and unspecified"),
               {}};
}

// "layers.1" of "layers.1.mlp"; empty at the top.
std::string_view parent_module(std::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

// True when `path` is `prefix` or lies below it: "layers.1" has "layers.1.mlp", not "layers.10".
bool is_below(std::string_view path, std::string_view prefix) {
  return path.starts_with(prefix) && (path.size() == prefix.size() || prefix.empty() || path[prefix.size()] == '.');
}

nlohmann::ordered_json names_json(const Graph& graph, const std::vector<NodeId>& nodes) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const NodeId node : nodes) list.push_back(graph.name_of(node));
  return list;
}

// The phase passes and `mem` see, by node; the stored one in a broken graph, where it cannot be told.
IdMap<NodeId, Phase> phases_of(const Graph& graph, Validity validity) {
  if (validity == Validity::kValid) return resolve_phases(graph).phase;
  IdMap<NodeId, Phase> phases;
  for (const NodeId node : graph.nodes()) phases[node] = graph[node].phase;
  return phases;
}

nlohmann::ordered_json node_json(const Graph& graph, NodeId id, Phase phase) {
  const Module& module = graph.module();
  const Node& node = graph[id];
  return {{"graph", module.text(graph.name())},
          {"name", graph.name_of(id)},
          {"kind", name_of(node.kind)},
          {"target", node.target.is_valid() ? module.text(module.target(node.target).name) : std::string_view()},
          {"value", value_text(graph, graph.value(id))},
          {"phase", name_of(phase)},
          {"tag", name_of(node.tag)},
          {"module_path", module.text(node.module_path)},
          {"source", source_text(graph, id)},
          {"inputs", names_json(graph, graph.inputs(id))},
          {"users", names_json(graph, graph.users(id))},
          {"text", print_node(graph, id)}};
}

void print_neighbours(std::ostream& out, const Graph& graph, std::string_view title, const std::vector<NodeId>& nodes) {
  if (nodes.empty()) return;
  out << "  " << title << '\n';
  for (const NodeId node : nodes) out << "    " << print_node(graph, node) << '\n';
}

class Shower {
 public:
  Shower(Console& console, const ShowFlags& flags, std::optional<Phase> phase)
      : console_(console), flags_(flags), phase_(phase) {}

  void show(const std::string& path, nlohmann::ordered_json& result) {
    const std::unique_ptr<Module> module = load_input(console_, path);
    if (module == nullptr) return;
    const std::string shown = shown_input(path);
    Result<std::vector<const Graph*>> graphs = select(*module, shown);
    if (!graphs.ok()) return console_.error(graphs.error());
    print_file_title(console_.product(), flags_.inputs, path);
    if (!flags_.nodes.empty()) {
      result["nodes"] = show_nodes(*module, *graphs, shown);
    } else if (flags_.has_filter()) {
      result["nodes"] = show_matching(*module, *graphs, shown);
    } else if (flags_.summary) {
      result["graphs"] = show_summary(*module, *graphs, shown);
    } else {
      show_text(*module, *graphs, result);
    }
  }

 private:
  // Subgraphs are shown too, unless one graph is asked for.
  Result<std::vector<const Graph*>> select(const Module& module, const std::string& file) const {
    if (!flags_.graph.empty()) return select_graphs(module, flags_.graph, file);
    std::vector<const Graph*> graphs;
    for (size_t i = 0; i < module.num_graphs(); ++i) graphs.push_back(&module.graph(GraphId(i)));
    return graphs;
  }

  void show_text(const Module& module, const std::vector<const Graph*>& graphs, nlohmann::ordered_json& result) {
    const std::string text = flags_.graph.empty() ? print_text(module) : print_text(*graphs.front());
    if (console_.wants_json()) result["text"] = text;
    console_.write_product(text);
  }

  nlohmann::ordered_json show_summary(const Module& module, const std::vector<const Graph*>& graphs,
                                      const std::string& file) {
    const Validity validity = validity_of(module);
    if (validity == Validity::kBroken) {
      Where where;
      where.file = file;
      console_.warning("broken-invariants", where, "storages are left out: `fxopt verify` says what is broken");
    }
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Graph* graph : graphs) {
      const GraphSummary summary = summarize(*graph, validity);
      print_summary(console_.product(), summary);
      list.push_back(summary_json(summary));
    }
    return list;
  }

  static Validity validity_of(const Module& module) {
    return verify(module, 1).empty() ? Validity::kValid : Validity::kBroken;
  }

  // Lines of several graphs need to say whose they are.
  void print_graph_title(const std::vector<const Graph*>& graphs, const Graph& graph) {
    if (graphs.size() == 1) return;
    console_.product() << "# @" << printable_line(graph.module().text(graph.name())) << '\n';
  }

  nlohmann::ordered_json show_nodes(const Module& module, const std::vector<const Graph*>& graphs,
                                    const std::string& file) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const std::string& given : flags_.nodes) {
      const std::string name = bare_name(given, '%');
      bool is_found = false;
      for (const Graph* graph : graphs) {
        const StringId id = module.strings.find(name);
        const NodeId node = id.is_valid() ? graph->find(id) : NodeId();
        if (!node.is_valid()) continue;
        is_found = true;
        std::ostream& out = console_.product();
        print_graph_title(graphs, *graph);
        out << print_node(*graph, node) << '\n';
        print_neighbours(out, *graph, "inputs", graph->inputs(node));
        print_neighbours(out, *graph, "users", graph->users(node));
        if (!console_.wants_json()) continue;
        const IdMap<NodeId, Phase> phases = phases_of(*graph, validity_of(module));
        list.push_back(node_json(*graph, node, phases[node]));
      }
      if (!is_found) report_missing(graphs, name, file);
    }
    return list;
  }

  void report_missing(const std::vector<const Graph*>& graphs, const std::string& name, const std::string& file) {
    std::vector<std::string_view> names;
    for (const Graph* graph : graphs) {
      for (const NodeId node : graph->nodes()) names.push_back(graph->name_of(node));
    }
    Error error{ErrorCode::kUnknownNode,
                "there is no node '" + name + "'",
                suggestion(name, names, "`fxopt show` prints the names"),
                {}};
    error.where.file = file;
    console_.error(error);
  }

  bool matches(const Graph& graph, NodeId id, Phase phase) const {
    const Node& node = graph[id];
    const bool wants_unmarked = phase_ == Phase::kUnspecified;
    if (phase_.has_value() && (wants_unmarked ? node.phase : phase) != *phase_) return false;
    return is_below(graph.module().text(node.module_path), flags_.module_prefix);
  }

  nlohmann::ordered_json show_matching(const Module& module, const std::vector<const Graph*>& graphs,
                                       const std::string& file) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    const Validity validity = validity_of(module);
    bool is_found = false;
    for (const Graph* graph : graphs) {
      const IdMap<NodeId, Phase> phases = phases_of(*graph, validity);
      bool is_first = true;
      for (const NodeId id : graph->nodes()) {
        if (!matches(*graph, id, phases[id])) continue;
        if (std::exchange(is_first, false)) print_graph_title(graphs, *graph);
        is_found = true;
        console_.product() << print_node(*graph, id) << '\n';
        if (console_.wants_json()) list.push_back(node_json(*graph, id, phases[id]));
      }
    }
    if (!is_found) warn_no_match(graphs, file);
    return list;
  }

  void warn_no_match(const std::vector<const Graph*>& graphs, const std::string& file) {
    std::set<std::string_view> modules;  // all that a --module could name
    for (const Graph* graph : graphs) {
      for (const NodeId id : graph->nodes()) {
        std::string_view path = graph->module().text((*graph)[id].module_path);
        while (!path.empty() && modules.insert(path).second) path = parent_module(path);
      }
    }
    std::string message = "no node";
    if (phase_.has_value()) message += " of phase " + std::string(name_of(*phase_));
    if (!flags_.module_prefix.empty()) message += " at or below module '" + flags_.module_prefix + "'";
    if (!flags_.module_prefix.empty() && !modules.contains(flags_.module_prefix)) {
      message += "; " + suggestion(flags_.module_prefix, {modules.begin(), modules.end()},
                                   "parts of a module path are whole words between dots");
    }
    Where where;
    where.file = file;
    console_.warning("no-match", where, message);
  }

  Console& console_;
  const ShowFlags& flags_;
  std::optional<Phase> phase_;
};

void run_show(Console& console, const ShowFlags& flags) {
  console.result()["files"] = nlohmann::ordered_json::array();
  const Status inputs = check_inputs(flags.inputs);
  if (!inputs.ok()) return console.error(inputs.error());
  const Result<std::optional<Phase>> phase = parse_phase(flags.phase);
  if (!phase.ok()) return console.error(phase.error());
  Shower shower(console, flags, *phase);
  for_each_input(console, flags.inputs,
                 [&](size_t i, nlohmann::ordered_json& file) { shower.show(flags.inputs[i], file); });
}

}  // namespace

CommandBody declare_show(CLI::App& app) {
  const std::shared_ptr<ShowFlags> flags = std::make_shared<ShowFlags>();
  app.add_option("IN", flags->inputs, "graph files; '-' is standard input")->type_name("IN")->required();
  CLI::Option* node = app.add_option("--node", flags->nodes, "print this node, its inputs and its users; repeatable")
                          ->type_name("NAME")
                          ->allow_extra_args(false);
  CLI::Option* summary =
      app.add_flag("--summary", flags->summary, "print counts: calls, phases, tags, roles, collectives, storages");
  CLI::Option* phase =
      app.add_option("--phase", flags->phase, "print the nodes of one phase, as passes see it")->type_name("PHASE");
  CLI::Option* module = app.add_option("--module", flags->module_prefix, "print the nodes at or below this module path")
                            ->type_name("PREFIX");
  app.add_option("--graph", flags->graph, "look at this graph only")->type_name("NAME");
  summary->excludes(node)->excludes(phase)->excludes(module);
  node->excludes(phase)->excludes(module);
  return [flags](Console& console) { run_show(console, *flags); };
}

}  // namespace fxopt
