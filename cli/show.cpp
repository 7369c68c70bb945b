// fxopt show: prints a graph as text, some of its nodes, a summary, or a drawing.

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/files.h"
#include "cli/print/brief.h"
#include "cli/print/json.h"
#include "cli/print/json_list.h"
#include "cli/print/nodes.h"
#include "cli/print/table.h"
#include "cli/products.h"
#include "cli/report/dependences.h"
#include "cli/report/dot.h"
#include "cli/report/summary.h"
#include "cli/selection.h"
#include "core/bytes.h"
#include "core/text.h"
#include "ir/check/verify.h"
#include "ir/graph/top_level.h"
#include "ir/prepare.h"
#include "ir/step/facts.h"

namespace fxopt {
namespace {

struct ShowFlags {
  std::vector<std::string> inputs;
  SelectionFlags selection;
  bool summary = false;
  std::optional<uint64_t> top;
  std::optional<size_t> module_depth;
  std::string dot;  // a file, or "-" for standard output; empty: no drawing
  bool dependences = false;
  bool is_brief = false;
  bool is_full = false;
};

nlohmann::ordered_json names_json(const Graph& graph, const std::vector<NodeId>& nodes) {
  return json_list(nodes, [&](NodeId node) { return graph.name_of(node); });
}

nlohmann::ordered_json node_json(const Graph& graph, NodeId id, Phase phase) {
  const Module& module = graph.module();
  const Node& node = graph[id];
  return {{"graph", module.text(graph.name())},
          {"name", graph.name_of(id)},
          {"kind", name_of(node.kind)},
          {"target", target_text(graph, id)},
          {"value", value_text(graph, graph.value(id))},
          {"phase", name_of(phase)},
          {"tag", name_of(node.tag)},
          {"module_path", module.text(node.module_path)},
          {"source", source_text(graph, id)},
          {"inputs", names_json(graph, graph.inputs(id))},
          {"users", names_json(graph, graph.users(id))},
          {"text", print_node(graph, id)}};
}

// Shows all inputs of one command line. A drawing for a file is collected until the end.
class Shower {
 public:
  Shower(Console& console, const ShowFlags& flags) : console_(console), flags_(flags) {}

  void show(const std::string& path, nlohmann::ordered_json& result) {
    const std::unique_ptr<Module> module = load_input(console_, path);
    if (module == nullptr) return;
    file_ = shown_input(path);
    if (flags_.dependences && !is_valid_input(console_, *module, path)) return;
    const bool is_plain = flags_.dependences || (!flags_.selection.has_any() && !flags_.summary && flags_.dot.empty());
    // A summary counts the calls inside control_deps operators, as mem does, so these operators are
    // lowered first.
    const Prepared prepared = flags_.summary ? prepare_logged(console_, *module, path)
                                             : Prepared{is_plain ? std::vector<Error>() : verify(*module, 1), {}, 0, 0};
    validity_ = prepared.broken.empty() ? Validity::kValid : Validity::kBroken;
    lowered_ = prepared.lowered;
    const size_t errors_before = console_.num_errors();
    const std::vector<Selection> selections = select_nodes(console_, *module, flags_.selection, validity_, file_);
    if (selections.empty() && console_.num_errors() > errors_before) return;
    print_file_title(console_.product(), flags_.inputs, path);
    if (flags_.summary) {
      show_summary(*module, selections, result);
    } else if (!flags_.dot.empty()) {
      show_drawing(selections, result);
    } else if (flags_.dependences) {
      result["nodes"] = show_dependences(selections);
    } else if (flags_.selection.has_any()) {
      result["nodes"] = show_nodes(selections);
    } else {
      show_text(*module, selections, result);
    }
  }

  const std::string& drawing() const { return drawing_; }

 private:
  void show_text(const Module& module, const std::vector<Selection>& selections, nlohmann::ordered_json& result) {
    const bool is_whole = flags_.selection.graph.empty();
    std::string text;
    if (flags_.is_full || console_.wants_json()) {
      text = is_whole ? print_text(module) : print_text(*selections.front().graph);
    }
    if (console_.wants_json()) result["text"] = text;
    if (!flags_.is_full) {
      std::ostringstream brief;
      is_whole ? print_brief(brief, module, console_.width())
               : print_brief(brief, *selections.front().graph, console_.width());
      text = brief.str();
    }
    console_.write_product(text);
  }

  // Returns one line for the node, short enough to follow `indent` spaces.
  std::string line_of(const Graph& graph, NodeId node, size_t indent) const {
    return flags_.is_full ? print_node(graph, node) : brief_node(graph, node, console_.width() - indent);
  }

  void print_neighbours(const Graph& graph, std::string_view title, const std::vector<NodeId>& nodes) {
    constexpr size_t kIndent = 4;
    if (nodes.empty()) return;
    std::ostream& out = console_.product();
    out << "  " << title << '\n';
    for (const NodeId node : nodes) out << std::string(kIndent, ' ') << line_of(graph, node, kIndent) << '\n';
  }

  void show_summary(const Module& module, const std::vector<Selection>& selections, nlohmann::ordered_json& result) {
    if (validity_ == Validity::kBroken) {
      console_.warning("broken-invariants", where_in(file_),
                       "the graph is broken, so the summary leaves out storages; `fxopt verify` lists the errors");
    }
    const SummaryView view{flags_.top.value_or(SummaryView().top), flags_.module_depth};
    std::vector<bool> is_top_level(module.num_graph_ids(), false);
    for (const GraphId id : top_level_graphs(module)) is_top_level[id.index()] = true;
    SubgraphEffects effects(module);
    std::vector<GraphSummary> subgraphs;
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Selection& selection : selections) {
      const Graph* graph = selection.graph;
      const std::vector<NodeId>* part = flags_.selection.has_any() ? &selection.nodes : nullptr;
      GraphSummary summary = summarize(*graph, validity_, part, effects);
      const bool is_folded = flags_.selection.graph.empty() && !is_top_level[graph->id().index()];
      if (console_.wants_json()) list.push_back(summary_json(summary, view));
      if (is_folded) {
        subgraphs.push_back(std::move(summary));
      } else {
        print_summary(console_.product(), summary, view);
      }
    }
    print_subgraphs(console_.product(), subgraphs, view);
    if (lowered_.done + lowered_.left > 0) {
      console_.product() << "control_deps: " << lowered_.done << " lowered to the calls that they contain, "
                         << lowered_.left << " not lowered\n";
    }
    result["control_deps"] = {{"lowered", lowered_.done}, {"left", lowered_.left}};
    result["graphs"] = std::move(list);
  }

  void show_drawing(const std::vector<Selection>& selections, nlohmann::ordered_json& result) {
    size_t nodes = 0;
    for (const Selection& selection : selections) nodes += selection.nodes.size();
    if (nodes > kLargeDrawing) {
      console_.warning("large-drawing", where_in(file_),
                       count_text(nodes, "node") +
                           " take Graphviz a long time; draw fewer nodes with --node NAME --depth 3, --module "
                           "or --phase");
    }
    drawing_ = dot_text(selections, validity_);
    if (console_.wants_json()) result["dot"] = drawing_;
    if (flags_.dot == "-") console_.write_product(drawing_);
  }

  // If nodes of several graphs are printed, prints a title for each graph.
  void print_graph_title(const std::vector<Selection>& selections, const Graph& graph) {
    if (selections.size() == 1) return;
    console_.product() << "# @" << printable_line(graph.module().text(graph.name())) << '\n';
  }

  nlohmann::ordered_json show_nodes(const std::vector<Selection>& selections) {
    const bool has_neighbours = !flags_.selection.nodes.empty() && !flags_.selection.depth.has_value();
    std::ostream& out = console_.product();
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const auto& [graph, nodes] : selections) {
      print_graph_title(selections, *graph);
      IdMap<NodeId, Phase> phases;
      if (console_.wants_json()) phases = visible_phases(*graph, validity_);
      for (const NodeId node : nodes) {
        out << line_of(*graph, node, 0) << '\n';
        if (has_neighbours) print_neighbours(*graph, "inputs", graph->inputs(node));
        if (has_neighbours) print_neighbours(*graph, "users", graph->users(node));
        if (console_.wants_json()) list.push_back(node_json(*graph, node, phases.get(node)));
      }
    }
    return list;
  }

  nlohmann::ordered_json show_dependences(const std::vector<Selection>& selections) {
    std::ostream& out = console_.product();
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const auto& [graph, nodes] : selections) {
      print_graph_title(selections, *graph);
      ModuleFacts facts(graph->module());
      const DependenceMap& dependences = facts.of(*graph).dependences();
      for (const NodeId node : nodes) {
        out << line_of(*graph, node, 0) << '\n';
        print_dependences(out, *graph, dependences, node);
        if (console_.wants_json()) list.push_back(dependences_json(*graph, dependences, node));
      }
    }
    return list;
  }

  Console& console_;
  const ShowFlags& flags_;
  std::string file_;
  Validity validity_ = Validity::kValid;
  ControlDepsResult lowered_;
  std::string drawing_;
};

// Fails if an input after the first is a missing file whose name could be the name of a node.
Status check_names(const std::vector<std::string>& inputs) {
  for (size_t i = 1; i < inputs.size(); ++i) {
    const std::string& input = inputs[i];
    std::error_code unknown;
    if (input == "-" || input.find_first_of("./") != std::string::npos || std::filesystem::exists(input, unknown))
      continue;
    const std::string node = input.starts_with('%') ? input.substr(1) : input;
    return usage_error("there is no file '" + input + "'", "to print a node, use --node " + node);
  }
  return ok_status();
}

Status check_flags(Console& console, const ShowFlags& flags) {
  if (const Status inputs = check_inputs(flags.inputs); !inputs.ok()) return inputs.error();
  if (const Status names = check_names(flags.inputs); !names.ok()) return names.error();
  if (const Status selection = check_selection(flags.selection); !selection.ok()) return selection.error();
  if (!flags.summary && (flags.top.has_value() || flags.module_depth.has_value())) {
    return usage_error(std::string(flags.top.has_value() ? "--top" : "--module-depth") + " needs --summary",
                       "add --summary");
  }
  if (flags.dot.empty() || flags.dot == "-") return ok_status();
  if (flags.inputs.size() > 1) {
    const std::string meant = console.misread_hint();
    return usage_error("several inputs for one drawing in '" + flags.dot + "'",
                       meant.empty() ? "draw one input per call" : meant);
  }
  return check_extra_product(console, flags.inputs, "--dot", flags.dot);
}

void run_show(Console& console, const ShowFlags& flags) {
  console.result()["files"] = nlohmann::ordered_json::array();
  if (!console.is_ok(check_flags(console, flags))) return;
  Shower shower(console, flags);
  for_each_input(console, flags.inputs,
                 [&](size_t i, nlohmann::ordered_json& file) { shower.show(flags.inputs[i], file); });
  if (flags.dot != "-" && !shower.drawing().empty()) console.write_output(flags.dot, shower.drawing());
}

void declare_selection(Options options, SelectionFlags& flags) {
  options.add("--node", flags.nodes, "print this node, its inputs and its users; repeatable").type("NAME").one_each();
  options
      .add("--depth", flags.depth, "with --node: print all nodes up to N edges away from this node, in schedule order")
      .type("N");
  options
      .add("--phase", flags.phase,
           "print only nodes of this phase: forward, loss, backward, optimizer or unspecified. A node must match all "
           "selection options that are given")
      .type("PHASE");
  options
      .add("--module", flags.module_prefix,
           "print only nodes of this module and its submodules; '*' matches any characters")
      .type("PREFIX");
  options.add("--graph", flags.graph, "print only nodes of this graph").type("NAME");
}

}  // namespace

CommandBody declare_show(Options options) {
  const std::shared_ptr<ShowFlags> flags = std::make_shared<ShowFlags>();
  options.add("IN", flags->inputs, "graph files; '-' is standard input").type("IN").required();
  declare_selection(options, flags->selection);
  const Option summary = options.flag("--summary", flags->summary,
                                      "print a summary: inputs, phases, modules, calls, collectives, opaque nodes "
                                      "(see `fxopt help summary`)");
  options.add("--top", flags->top, "with --summary: print at most N rows of each list (default: 20)").type("N");
  options
      .add("--module-depth", flags->module_depth,
           "with --summary: group nodes by the first N parts of their module path (at least 1). By default, N is the "
           "largest number for which the table has at most as many rows as --top allows")
      .type("N");
  const Option dot = options
                         .flag("--dot{-}", flags->dot,
                               "write a drawing as Graphviz text to standard output or to FILE; `| dot -Tsvg > x.svg` "
                               "converts it")
                         .type("FILE")
                         .excludes(summary);
  options
      .flag("--dependences", flags->dependences,
            "for each node, print the nodes that must run before it, the reasons, and how far the node may move (see "
            "`fxopt help dependences`)")
      .excludes(summary)
      .excludes(dot);
  const Option brief = options.flag("--brief", flags->is_brief,
                                    "print one line for each node (default): name, type, call, phase, tag, module and "
                                    "source line. Lines are cut to the width of the terminal (80 to 160 columns)");
  options.flag("--full", flags->is_full, "print all fields of each node, in the text form that other commands can read")
      .excludes(brief);
  return [flags](Console& console) { run_show(console, *flags); };
}

}  // namespace fxopt
