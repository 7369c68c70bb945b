// Moves getitems up to the node they take from.
//
//   %s = split(%x, 4)                     %s = split(%x, 4)
//   %n = neg(%x)                    =>    %a = getitem(%s, 0)
//   %a = getitem(%s, 0)                   %n = neg(%x)
//
// Legal  A getitem computes nothing and reads no data, so only what orders it by other means can hold it: control
//        dependencies of its own, events, an index that is computed.
// Place  The canonical order is depth first: a getitem of a getitem comes right after it, before the next sibling. That
//        makes the pass idempotent.

#include "passes/clean/raise_getitems.h"

#include <utility>
#include <vector>

#include "ir/analysis/order.h"

namespace fxopt {
Result<PassResult> raise_getitems(Graph& graph, const RaiseGetitemsOptions&) {
  PassResult result;
  std::vector<NodeId> getitems;
  for (const NodeId node : graph.nodes()) {
    if (!graph[node].is_call() || graph.op(node).view != ViewKind::kProjection) continue;
    const Arg* parent = graph.arg(node, 0);
    if (parent == nullptr || !parent->is(ArgKind::kNode)) continue;
    if (is_held(graph, node) || graph.inputs(node).size() != 1) {
      if (graph.prev(node) != parent->as_node()) {
        result.remark(graph, node, "held", "a control dependency, an event or a computed index holds it in place");
      }
      continue;
    }
    getitems.push_back(node);
  }
  IdMap<NodeId, NodeId> last_child(graph.num_ids());
  for (const NodeId node : getitems) {
    const NodeId parent = graph.arg(node, 0)->as_node();
    NodeId anchor = parent;
    while (last_child.get(anchor).is_valid()) anchor = last_child.get(anchor);
    last_child[parent] = node;
    if (graph.next(anchor) == node) continue;
    graph.move_before(node, graph.next(anchor));
    result.count("raised");
  }
  return result;
}

}  // namespace fxopt
