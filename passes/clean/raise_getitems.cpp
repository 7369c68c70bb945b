// Moves getitems up to their producers.
//
//   %s = split(%x, 4)                     %s = split(%x, 4)
//   %n = neg(%x)                    =>    %a = getitem(%s, 0)
//   %a = getitem(%s, 0)                   %n = neg(%x)
//
// Legal  A getitem of a tuple, list or dict computes nothing and reads no data. Only control
//        dependencies of the getitem, events, or a computed index hold it in place. A getitem of a
//        tensor is a view or a copy and is not moved. A getitem of a node without a recorded value
//        may be of either kind, so this getitem stays after ops that change the sizes of its input
//        in place.
// Place  The order is depth first: a getitem is followed by the getitems of its own result, and
//        then by the next getitem of its producer. A second run therefore changes nothing. Calls
//        come after all placeholders. Getitems of inputs, and of attributes between inputs,
//        therefore come after the last placeholder, in their original order.

#include "passes/clean/raise_getitems.h"

#include <utility>
#include <vector>

#include "ir/alias/effects.h"
#include "ir/alias/order.h"

namespace fxopt {
namespace {

bool is_free(Facts& facts, NodeId node, NodeId parent, PassResult& result) {
  const Graph& graph = facts.graph();
  if (is_held(graph, node) || graph.inputs(node).size() != 1) {
    if (graph.prev(node) != parent) {
      result.remark(graph, node, "held", "not moved: it has a control dependency, an event or a computed index");
    }
    return false;
  }
  if (graph.value(parent).kind != ValueKind::kAbsent) return true;
  if (!facts.storages().input_metadata_changes(node, parent, node)) return true;
  result.remark(graph, node, "changed-in-place",
                "not moved: the sizes or strides of its input change in place before it runs");
  return false;
}

// Finds the place for the getitems of a node: after the node, or after the last placeholder if that
// comes later.
class Parents {
 public:
  explicit Parents(const Graph& graph) : above_inputs_end_(graph.num_ids(), false) {
    for (const NodeId node : graph.nodes()) {
      if (graph[node].is_call()) break;
      if (graph[node].kind == NodeKind::kPlaceholder) inputs_end_ = node;
    }
    if (!inputs_end_.is_valid()) return;
    for (NodeId node = graph.first(); node != inputs_end_; node = graph.next(node)) above_inputs_end_[node] = true;
  }

  NodeId of(NodeId node) const { return above_inputs_end_.get(node) ? inputs_end_ : node; }

 private:
  NodeId inputs_end_;
  IdMap<NodeId, bool> above_inputs_end_;  // inputs and attributes
};

}  // namespace

Result<PassResult> raise_getitems(Graph& graph, const RaiseGetitemsOptions&, PassContext& context) {
  PassResult result;
  Facts& facts = context.facts.of(graph);
  std::vector<NodeId> getitems;
  for (const NodeId node : graph.nodes()) {
    const NodeId whole = whole_of(graph, node);
    if (whole.is_valid() && is_free(facts, node, whole, result)) getitems.push_back(node);
  }
  const Parents parents(graph);
  IdMap<NodeId, NodeId> last_child(graph.num_ids());
  for (const NodeId node : getitems) {
    const NodeId parent = parents.of(graph.arg(node, 0)->as_node());
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
