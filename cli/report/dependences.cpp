#include "cli/report/dependences.h"

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/bytes.h"
#include "core/text.h"
#include "ir/graph/module.h"

namespace fxopt {
namespace {

std::string named(const Graph& graph, NodeId node) { return "%" + std::string(graph.name_of(node)); }

std::string range_text(const Graph& graph, const DependenceMap& dependences, NodeId node) {
  const auto [after, before] = dependences.range(node);
  const NodeKind kind = graph[node].kind;
  if (kind == NodeKind::kPlaceholder || kind == NodeKind::kOutput) return "may not move: part of the graph's interface";
  const bool is_first = after.has_value() ? after->on == graph.prev(node) : !graph.prev(node).is_valid();
  const bool is_last = before.has_value() ? before->on == graph.next(node) : !graph.next(node).is_valid();
  if (is_first && is_last) return "may not move";
  return "may move up to " + (after.has_value() ? "right after " + named(graph, after->on) : "the beginning") +
         ", down to " + (before.has_value() ? "right before " + named(graph, before->on) : "the end");
}

nlohmann::ordered_json list_json(const Graph& graph, std::span<const Dependence> all) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Dependence& each : all) list.push_back({{"node", graph.name_of(each.on)}, {"why", name_of(each.why)}});
  return list;
}

}  // namespace

void print_dependences(std::ostream& out, const Graph& graph, const DependenceMap& dependences, NodeId node) {
  std::vector<std::string> parts;
  for (const Dependence& each : dependences.of(node)) {
    parts.push_back(named(graph, each.on) + " (" + std::string(name_of(each.why)) + ")");
  }
  if (!parts.empty()) out << "    follows " << printable_line(join(parts, ", ")) << '\n';
  out << "    " << printable_line(range_text(graph, dependences, node)) << '\n';
}

nlohmann::ordered_json dependences_json(const Graph& graph, const DependenceMap& dependences, NodeId node) {
  return {{"graph", graph.module().text(graph.name())},
          {"name", graph.name_of(node)},
          {"follows", list_json(graph, dependences.of(node))},
          {"followed_by", list_json(graph, dependences.followers(node))}};
}

}  // namespace fxopt
