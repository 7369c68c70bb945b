#include "cli/selection.h"

#include <set>
#include <string_view>
#include <utility>

#include "cli/arguments.h"
#include "cli/console.h"
#include "cli/files.h"
#include "cli/print/table.h"
#include "core/text.h"
#include "ir/summary/neighbours.h"

namespace fxopt {
namespace {

// Returns the parent module: "layers.1" for "layers.1.mlp". Returns an empty text for a top-level
// module.
std::string_view parent_module(std::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

class Selector {
 public:
  Selector(Console& console, const Module& module, const SelectionFlags& flags, const std::string& file)
      : console_(console), module_(module), flags_(flags), file_(file), phase_(parse_enum<Phase>(flags.phase)) {}

  std::vector<Selection> run(Validity validity) {
    Result<std::vector<const Graph*>> graphs = find_graphs();
    if (!console_.is_ok(graphs)) return {};
    graphs_ = std::move(*graphs);
    const std::vector<std::string> missing = missing_names();
    for (const std::string& name : missing) report_missing(name);
    std::vector<Selection> selections;
    for (const Graph* graph : graphs_) {
      Selection selection{graph, candidates(*graph)};
      if (!flags_.phase.empty() || !flags_.module_prefix.empty()) filter(selection, validity);
      if (!selection.nodes.empty() || !flags_.has_any()) selections.push_back(std::move(selection));
    }
    if (selections.empty() && missing.empty()) warn_no_match();
    return selections;
  }

 private:
  // Returns the graph of --graph. Without --graph, returns all graphs, including subgraphs.
  Result<std::vector<const Graph*>> find_graphs() const {
    if (!flags_.graph.empty()) return select_graphs(module_, flags_.graph, file_);
    std::vector<const Graph*> graphs;
    for (const GraphId id : module_.graphs()) graphs.push_back(&module_.graph(id));
    return graphs;
  }

  NodeId find(const Graph& graph, const std::string& given) const {
    const StringId id = module_.strings.find(bare_name(given, '%'));
    return id.is_valid() ? graph.find(id) : NodeId();
  }

  std::vector<std::string> missing_names() const {
    std::vector<std::string> missing;
    for (const std::string& name : flags_.nodes) {
      bool is_found = false;
      for (const Graph* graph : graphs_) is_found = is_found || find(*graph, name).is_valid();
      if (!is_found) missing.push_back(bare_name(name, '%'));
    }
    return missing;
  }

  void report_missing(const std::string& name) const {
    std::vector<std::string_view> names;
    for (const Graph* graph : graphs_) {
      for (const NodeId node : graph->nodes()) names.push_back(graph->name_of(node));
    }
    console_.error(unknown_node(name, names, file_));
  }

  // Returns the nodes that --node selects. Without --node, returns all nodes.
  std::vector<NodeId> candidates(const Graph& graph) const {
    std::vector<NodeId> nodes;
    if (flags_.nodes.empty()) {
      for (const NodeId node : graph.nodes()) nodes.push_back(node);
      return nodes;
    }
    for (const std::string& name : flags_.nodes) {
      if (const NodeId node = find(graph, name); node.is_valid()) nodes.push_back(node);
    }
    return nodes.empty() ? nodes : neighbourhood(graph, nodes, flags_.depth.value_or(0));
  }

  void filter(Selection& selection, Validity validity) const {
    const Graph& graph = *selection.graph;
    const IdMap<NodeId, Phase> phases = flags_.phase.empty() ? IdMap<NodeId, Phase>() : visible_phases(graph, validity);
    std::erase_if(selection.nodes, [&](NodeId id) {
      // With --phase unspecified, the stored phases are compared, because derived phases are never
      // unspecified.
      const Phase phase = phase_ == Phase::kUnspecified ? graph[id].phase : phases.get(id);
      if (phase_.has_value() && phase != *phase_) return true;
      return !flags_.module_prefix.empty() && !is_in_modules(module_.text(graph[id].module_path));
    });
  }

  // True if --module names this module or a module around it. '*' matches any characters.
  bool is_in_modules(std::string_view path) const {
    const std::string& wanted = flags_.module_prefix;
    return is_within(path, wanted) || (wanted.find('*') != std::string::npos &&
                                       (matches_pattern(path, wanted) || matches_pattern(path, wanted + ".*")));
  }

  std::string described() const {
    std::string text;
    if (!flags_.nodes.empty()) {
      std::vector<std::string> names;
      for (const std::string& name : flags_.nodes) names.push_back("%" + bare_name(name, '%'));
      const size_t depth = flags_.depth.value_or(0);
      if (depth > 0) text += " within " + count_text(depth, "edge");
      text += (depth > 0 ? " of " : " among ") + join(names, ", ");
    }
    if (phase_.has_value()) text += " of phase " + std::string(name_of(*phase_));
    if (!flags_.module_prefix.empty()) text += " at or below module '" + flags_.module_prefix + "'";
    return text;
  }

  void warn_no_match() const {
    std::set<std::string_view> modules;  // all modules of the graphs
    for (const Graph* graph : graphs_) {
      for (const NodeId id : graph->nodes()) {
        std::string_view path = module_.text((*graph)[id].module_path);
        while (!path.empty() && modules.insert(path).second) path = parent_module(path);
      }
    }
    std::string message = "no node" + described();
    if (!flags_.module_prefix.empty() && !modules.contains(flags_.module_prefix)) {
      message += "; " + suggestion(flags_.module_prefix, {modules.begin(), modules.end()},
                                   "parts of a module path are whole words between dots");
    }
    console_.warning("no-match", where_in(file_), message);
  }

  Console& console_;
  const Module& module_;
  const SelectionFlags& flags_;
  const std::string& file_;
  std::optional<Phase> phase_;  // absent: any phase
  std::vector<const Graph*> graphs_;
};

}  // namespace

Status check_selection(const SelectionFlags& flags) {
  if (flags.depth.has_value() && flags.nodes.empty()) {
    return usage_error("--depth needs --node", "give --node NAME");
  }
  if (flags.phase.empty() || parse_enum<Phase>(flags.phase).has_value()) return ok_status();
  std::vector<std::string_view> names;
  for (const EnumName<Phase>& entry : EnumNames<Phase>::kAll) names.push_back(entry.name);
  return bad_value_error(
      "'" + flags.phase + "' is not a phase",
      suggestion(flags.phase, names, "the phases are forward, loss, backward, optimizer and unspecified"));
}

std::vector<Selection> select_nodes(Console& console, const Module& module, const SelectionFlags& flags,
                                    Validity validity, const std::string& file) {
  return Selector(console, module, flags, file).run(validity);
}

}  // namespace fxopt
