#include "passes/recompute/reloads.h"

#include <algorithm>
#include <string_view>

#include "ir/values/values.h"

namespace fxopt {
namespace {

constexpr std::string_view kOffload = "ao.offload.default";
constexpr std::string_view kReload = "ao.reload.default";
constexpr std::string_view kWait = "ao.wait_tensor.default";

bool calls(const Graph& graph, NodeId node, std::string_view name) {
  return graph[node].is_call() && graph.op(node).name == name;
}

// If `wait` waits for a reload, returns the value that was offloaded. Invalid for any other wait.
NodeId reloaded_by(const Graph& graph, NodeId wait) {
  const NodeId reload = first_argument(graph, wait);
  if (!reload.is_valid() || !calls(graph, reload, kReload)) return NodeId();
  NodeId host = first_argument(graph, reload);
  if (host.is_valid() && calls(graph, host, kWait)) host = first_argument(graph, host);
  if (!host.is_valid() || !calls(graph, host, kOffload)) return NodeId();
  return first_argument(graph, host);
}

}  // namespace

Reloads::Reloads(const Graph& graph, const PhaseMap& phases, const StorageMap& storages)
    : graph_(graph), storages_(storages) {
  for (const NodeId node : graph.nodes()) {
    if (!calls(graph, node, kWait) || !phases.is_backward(node)) continue;
    const NodeId offloaded = reloaded_by(graph, node);
    if (!offloaded.is_valid() || waits_[offloaded].is_valid()) continue;
    waits_[offloaded] = node;
    const NodeId reload = first_argument(graph, node);
    for (NodeId host = first_argument(graph, reload); host != offloaded; host = first_argument(graph, host)) {
      offloads_[host] = true;
    }
    empty_ = false;
    for (const BufferId buffer : storages.buffers(offloaded)) {
      if (!buffer.is_valid()) continue;
      owners_[buffer] = offloaded;
      classes_[storages.alias_class(buffer)] = offloaded;
    }
  }
}

NodeId Reloads::offloaded_under(NodeId node) const {
  if (empty_ || of(node).is_valid()) return NodeId();
  for (const BufferId buffer : storages_.buffers(node)) {
    if (!buffer.is_valid()) continue;
    const NodeId offloaded = classes_.get(storages_.alias_class(buffer));
    if (offloaded.is_valid()) return offloaded;
  }
  return NodeId();
}

std::optional<std::vector<NodeId>> Reloads::to_hoist(NodeId offloaded, NodeId reader) const {
  std::vector<NodeId> chain;
  const NodeId wait = of(offloaded);
  for (const NodeId node : {wait, first_argument(graph_, wait)}) {
    if (graph_.position(node) < graph_.position(reader)) break;
    if (node == reader || graph_.inputs(node).size() != 1) return std::nullopt;
    chain.insert(chain.begin(), node);
  }
  return chain;
}

}  // namespace fxopt
