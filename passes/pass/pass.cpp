#include "passes/pass/pass.h"

#include <set>

#include "core/error.h"
#include "ir/ops/op.h"

namespace fxopt {

std::string PassResult::near_name(const Graph& graph, const std::string& name) {
  std::set<std::string_view> names;  // sorted, so the order does not depend on the graph
  for (const NodeId node : graph.nodes()) {
    const std::string_view path = graph.module().text(graph[node].module_path);
    if (!path.empty()) names.insert(path);
    if (graph[node].is_call()) names.insert(graph.op(node).name);
  }
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  std::string_view near = closest_name(name, candidates);
  if (near.empty()) near = closest_name("aten." + name, candidates);
  return near.empty() ? "" : "; did you mean '" + std::string(near) + "'?";
}

std::string count_with_first(int64_t count, std::string_view one, std::string_view many, const std::string& first) {
  return std::to_string(count) + (count == 1 ? std::string(one) + ": " : std::string(many) + ". The first is ") + first;
}

}  // namespace fxopt
