#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "ir/graph/graph.h"

namespace fxopt {

class StorageMap;

// Returns the storages of a graph. Called only if needed, so not for a graph whose nodes are all
// marked.
using StorageSource = std::function<const StorageMap&()>;

// The phase of every node, decided once from the file's marks and from dependencies. A node marked
// by the tracer has the phase of its mark, unless a forward output depends on it. `has_markers`:
// some node of the graph carries a mark. Without marks analyze_phases() decides by tangents and the
// graph's kind alone; only infer_phases() finds more.
struct PhaseMap {
  IdMap<NodeId, Phase> phase;  // never kUnspecified
  bool has_markers = false;
  // Nodes marked forward that depend on a tangent or on the gradient of the loss. In schedule
  // order.
  std::vector<NodeId> conflicts;
  // Nodes marked backward that count as forward because a forward output depends on them, such as
  // those of autograd.grad inside forward. In schedule order.
  std::vector<NodeId> overruled;
  // The start of backward: tangent placeholders, or inferred gradient seeds. In schedule order.
  std::vector<NodeId> seeds;

  bool is_backward(NodeId id) const { return phase[id] == Phase::kBackward; }
};

// Phases from marks and tangents. In a joint graph, nodes that depend on a tangent placeholder are
// backward, and marks add more; a forward mark on such a node is a conflict. Unmarked calls after
// the last forward mark are backward unless they write or a forward output needs them. The
// framework's passes make such calls for gradients, and Dynamo's trace of a backward function has
// them.
//
// In other graphs the marks decide. An unmarked getitem follows its operand. Other unmarked nodes
// are backward in a backward graph, optimizer in an optimizer graph, and forward elsewhere.
// O(nodes + edges).
PhaseMap analyze_phases(const Graph& graph);
PhaseMap analyze_phases(const Graph& graph, const StorageSource& storages);  // when the caller has them

// Phases of a graph that carries no marks:
//
//   seeds     the gradient of the loss, where backward starts: ones_like or full_like of a loss, or
//             a constant of its shape, that leads to gradients. Without recorded output roles, a
//             returned seed is no gradient itself. In a joint graph: the tangents. Without a seed
//             every node is forward
//   backward  the closure of the seeds, through values and through storages that members write; and
//             the nodes between members that only backward reads: values recomputed from inputs,
//             views of parameters. A node is "between" if the nearest earlier node that is in the
//             closure or an ancestor of a forward output is in the closure. Values that forward
//             makes only for backward thus stay forward. In a joint graph so do writes to inputs:
//             they end forward, wherever they are in the schedule
//   forward   the rest
//
// Recorded output roles are used. Compared with PyTorch's marks on the same graphs, this finds
// every marked node and one more: the seed, which autograd makes before it starts to mark. It
// misses only nodes that depend on no gradient and that a schedule moved before the seed (figures:
// README.md). O((nodes + edges) * (1 + candidates for seeds / 64)).
PhaseMap infer_phases(const Graph& graph);
PhaseMap infer_phases(const Graph& graph, const StorageMap& storages);

// The nodes that depend on gradients, whatever their marks.
struct GradientReach {
  // The outputs of forward. In a joint graph: the first `num_forward_outputs`, if recorded.
  // Otherwise the outputs that are no gradients by their role, depend on no seed and are not marked
  // backward (for a loss or a user's output the mark does not count). A joint graph has only those
  // before the first other output.
  std::vector<NodeId> forward_outputs;
  IdMap<NodeId, uint64_t> depends;  // not 0: is a seed or depends on one
};
// Uses the seeds of infer_phases(), with the same complexity. Nothing if the graph has no seed.
std::optional<GradientReach> reach_of_gradients(const Graph& graph, const StorageMap& storages);

// Whether the graph is joint: forward and backward in one, with primals and tangents as inputs.
// Decided by its kind; if that is not recorded, by a recorded tangent. O(nodes).
bool is_joint(const Graph& graph);

// The placeholders whose new values the graph returns (outputs of role mutation; in a joint graph,
// those of forward). The runtime writes them, in a joint graph between forward and backward.
// O(inputs + outputs).
std::vector<NodeId> inputs_written_by_runtime(const Graph& graph);

// Whether a graph of this kind may contain a backward pass for infer_phases() to find.
bool may_hold_backward(const Graph& graph);

// The phases for a pass that must not mix phases: analyze_phases(), or infer_phases() for a graph
// without marks that may contain a backward pass. A node that a forward output depends on is
// forward, whatever its mark. An unmarked node that depends on a gradient is backward if marks
// contradict dependencies or leave such nodes out.
PhaseMap resolve_phases(const Graph& graph);
PhaseMap resolve_phases(const Graph& graph, const StorageMap& storages);
PhaseMap resolve_phases(const Graph& graph, const StorageSource& storages);

// Whether the node carries no phase mark. O(1).
bool has_no_phase_mark(const Node& node);

// Whether some node of the graph is backward. O(nodes).
bool holds_backward(const Graph& graph, const PhaseMap& phases);

// Unmarked calls of a joint graph after its last forward mark count as backward (analyze_phases()).
// Marks those calls forward that are forward in `phases`, computed before the graph changed.
// Returns their number. O(nodes).
size_t mark_rest_of_forward(Graph& graph, const PhaseMap& phases);

// Writes the phases of nodes whose marks are overruled and, except in joint graphs, of unmarked
// calls that depend on a gradient. The tracer's markers stay beside them. Returns the number of
// changed nodes. O(nodes).
size_t correct_phases(Graph& graph, const PhaseMap& phases);

// Writes inferred phases into a graph without marks, as marks of their own kind, so that later
// passes and programs read the same phases. Returns the number of marked nodes. O(nodes).
size_t mark_phases(Graph& graph, const PhaseMap& phases);

}  // namespace fxopt
