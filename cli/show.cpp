// fxopt show: a graph in text, some of its nodes, or what it is made of.

#include <memory>
#include <optional>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/files.h"
#include "cli/report/json.h"
#include "cli/report/nodes.h"
#include "cli/report/summary.h"
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

// True when `path` is `prefix` or lies below it: "layers.1" has "layers.1.mlp", not "layers.10".
bool is_below(std::string_view path, std::string_view prefix) {
  return path.starts_with(prefix) && (path.size() == prefix.size() || prefix.empty() || path[prefix.size()] == '.');
}

nlohmann::ordered_json names_json(const Graph& graph, const std::vector<NodeId>& nodes) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const NodeId node : nodes) list.push_back(graph.name_of(node));
  return list;
}

nlohmann::ordered_json node_json(const Graph& graph, NodeId id) {
  const Module& module = graph.module();
  const Node& node = graph[id];
  return {{"graph", module.text(graph.name())},
          {"name", graph.name_of(id)},
          {"kind", name_of(node.kind)},
          {"target", node.target.is_valid() ? module.text(module.target(node.target).name) : std::string_view()},
          {"value", value_text(graph, graph.value(id))},
          {"phase", name_of(node.phase)},
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

  void show(const std::string& path) {
    const std::unique_ptr<Module> module = load_input(console_, path);
    if (module == nullptr) return;
    const std::string shown = shown_input(path);
    Result<std::vector<const Graph*>> graphs = select(*module, shown);
    if (!graphs.ok()) return console_.error(graphs.error());
    if (flags_.inputs.size() > 1) console_.product() << "# " << printable_line(shown) << '\n';
    nlohmann::ordered_json result = {{"file", shown}};
    if (!flags_.nodes.empty()) {
      result["nodes"] = show_nodes(*graphs, shown);
    } else if (flags_.has_filter()) {
      result["nodes"] = show_matching(*graphs);
    } else if (flags_.summary) {
      result["graphs"] = show_summary(*module, *graphs, shown);
    } else {
      show_text(*module, *graphs, result);
    }
    console_.result()["files"].push_back(std::move(result));
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
    const Validity validity = verify(module, 1).empty() ? Validity::kValid : Validity::kBroken;
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

  nlohmann::ordered_json show_nodes(const std::vector<const Graph*>& graphs, const std::string& file) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const std::string& given : flags_.nodes) {
      // As the text form writes it, or bare.
      const std::string name = given.starts_with('%') ? given.substr(1) : given;
      bool is_found = false;
      for (const Graph* graph : graphs) {
        const StringId id = graph->module().strings.find(name);
        const NodeId node = id.is_valid() ? graph->find(id) : NodeId();
        if (!node.is_valid()) continue;
        is_found = true;
        std::ostream& out = console_.product();
        out << print_node(*graph, node) << '\n';
        print_neighbours(out, *graph, "inputs", graph->inputs(node));
        print_neighbours(out, *graph, "users", graph->users(node));
        list.push_back(node_json(*graph, node));
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

  nlohmann::ordered_json show_matching(const std::vector<const Graph*>& graphs) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Graph* graph : graphs) {
      for (const NodeId id : graph->nodes()) {
        const Node& node = (*graph)[id];
        if (phase_.has_value() && node.phase != *phase_) continue;
        if (!is_below(graph->module().text(node.module_path), flags_.module_prefix)) continue;
        console_.product() << print_node(*graph, id) << '\n';
        if (console_.wants_json()) list.push_back(node_json(*graph, id));
      }
    }
    return list;
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
  for_each_input(console, flags.inputs, [&](size_t i) { shower.show(flags.inputs[i]); });
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
  CLI::Option* phase = app.add_option("--phase", flags->phase, "print the nodes of one phase")->type_name("PHASE");
  CLI::Option* module = app.add_option("--module", flags->module_prefix, "print the nodes at or below this module path")
                            ->type_name("PREFIX");
  app.add_option("--graph", flags->graph, "look at this graph only")->type_name("NAME");
  summary->excludes(node)->excludes(phase)->excludes(module);
  node->excludes(phase)->excludes(module);
  return [flags](Console& console) { run_show(console, *flags); };
}

}  // namespace fxopt
