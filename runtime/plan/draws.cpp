#include "runtime/plan/draws.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace fxopt {

uint64_t first_uid(const Graph& graph, NodeId node) {
  uint64_t uid = graph[node].uid;
  const NodeExtra* extra = graph.extra(node);
  if (extra == nullptr) return uid;
  for (const Origin& origin : extra->origins) {
    if (origin.kind == OriginKind::kRecomputed) uid = std::min(uid, origin.uid);
  }
  return uid;
}

std::vector<uint32_t> invocations_of(const Module& module, const Step& step) {
  std::vector<uint32_t> invocations;
  std::map<GraphKind, uint32_t> counts;
  for (size_t i = 0; i < step.runs.size(); ++i) {
    const uint32_t count = counts[module.graph(step.runs[i].graph).kind]++;
    const bool is_recorded =
        step.is_given && i < module.invocations.size() && module.invocations[i].microbatch.value.has_value();
    invocations.push_back(is_recorded ? static_cast<uint32_t>(*module.invocations[i].microbatch.value) : count);
  }
  return invocations;
}

DrawKeys draw_keys(const Module& module, const Step& step, const Graph& composed) {
  const std::vector<uint32_t> invocations = invocations_of(module, step);
  const GraphId id = composed.id();
  if (step.runs.size() == 1) {
    return [id, invocation = invocations.front()](const Graph& graph, NodeId node) {
      return DrawKey{graph.id() == id ? invocation : 0, first_uid(graph, node)};
    };
  }
  // Nodes of the composed graph have names LABEL.NODE. A label may contain a '.', so names are
  // looked up, not split.
  auto keys = std::make_shared<IdMap<NodeId, DrawKey>>();
  for (size_t i = 0; i < step.runs.size(); ++i) {
    const Graph& graph = module.graph(step.runs[i].graph);
    for (const NodeId node : graph.nodes()) {
      if (!graph[node].is_call()) continue;
      const std::string name = step.runs[i].label + "." + std::string(graph.name_of(node));
      const StringId known = module.strings.find(name);
      const NodeId copy = known.is_valid() ? composed.find(known) : NodeId();
      if (copy.is_valid()) (*keys)[copy] = {invocations[i], first_uid(graph, node)};
    }
  }
  return [id, keys](const Graph& graph, NodeId node) {
    return graph.id() == id ? keys->get(node) : DrawKey{0, first_uid(graph, node)};
  };
}

Result<std::unique_ptr<Plan>> lower_step(Module& module, std::vector<std::string>* added_gradients) {
  const Result<Step> step = find_step(module);
  if (!step.ok()) return step.error();
  std::vector<NodeId> added;
  const GraphId composed = compose_step(module, *step, &added);
  const Graph& graph = module.graph(composed);
  if (added_gradients != nullptr) {
    for (const NodeId node : added) added_gradients->emplace_back(graph.name_of(node));
  }
  return lower(graph, draw_keys(module, *step, graph));
}

}  // namespace fxopt
