#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "ir/graph/graph.h"

namespace fxopt {

class StorageMap;

// A function that returns the storages of a graph. The function is called only if the storages are
// needed.
using StorageSource = std::function<const StorageMap&()>;

// The phase of every node, decided from dependencies and from the phase marks in the file. A phase
// mark is the phase that the file records for a node, usually from the tracer. A marked node
// usually has the phase of its mark. There is one exception. If a forward output depends on a node
// with the mark backward, the node is forward.
//
// `has_markers` is true if some node of the graph has a phase mark. Without marks, analyze_phases()
// uses only tangents and the kind of the graph. infer_phases() can find more backward nodes.
struct PhaseMap {
  IdMap<NodeId, Phase> phase;  // the phase is never kUnspecified
  bool has_markers = false;
  // Nodes that have the phase mark forward, but depend on a tangent or on the gradient of the loss.
  // In schedule order.
  std::vector<NodeId> conflicts;
  // Nodes that have the phase mark backward, but are treated as forward, because a forward output
  // depends on the nodes. In schedule order. For example, autograd.grad inside forward makes such
  // nodes.
  std::vector<NodeId> overruled;
  // The nodes at which backward starts, in schedule order: tangent placeholders, or inferred
  // gradient seeds.
  std::vector<NodeId> seeds;

  bool is_backward(NodeId id) const { return phase[id] == Phase::kBackward; }
};

// Returns the phases that follow from phase marks and tangents.
//
// In a joint graph, a marked node has the phase of its mark. Unmarked nodes that depend on a
// tangent placeholder are backward. If a node with a forward mark depends on a tangent, the node
// remains forward, and PhaseMap::conflicts contains the node. Unmarked calls after the last forward
// mark are also backward, except calls that write and calls that a forward output needs. This rule
// applies only if the number of forward outputs is recorded. The reason for this rule is that
// PyTorch's gradient passes add calls without marks, and Dynamo's trace of a backward function
// contains calls without marks.
//
// In other graphs, the marks decide the phases. An unmarked getitem has the phase of its operand.
// Any other unmarked node is backward in a backward graph, optimizer in an optimizer graph, and
// forward in graphs of other kinds. O(nodes + edges).
PhaseMap analyze_phases(const Graph& graph);
// An overload for callers that already have the storages.
PhaseMap analyze_phases(const Graph& graph, const StorageSource& storages);

// Returns the phases of a graph without phase marks:
//
//   seeds:    Backward starts at the seed, which is the gradient of the loss. The seed is a
//             ones_like or full_like of a loss, or a floating-point constant with one element. At
//             least one returned gradient must depend on the seed. If output roles are not
//             recorded, the seed itself does not count as a returned gradient. In a joint graph,
//             the seeds are the tangents. Without a seed, every node is forward.
//   backward: Members are backward. A member is a seed, or a node that depends on a seed. The
//             dependency may lead through values, or through storages that members write. Another
//             call or attribute N is also backward if these conditions are met:
//             - Only backward reads N.
//             - No later node of forward reads a storage that N writes, and no later forward output
//               is on this storage.
//             - The nearest anchor before N in the schedule is a member. An anchor is a member, a
//               forward output, or a node on which a forward output depends. Placeholders are not
//               anchors.
//             Examples of N are values recomputed from inputs, and views of parameters. But if
//             forward computes a value only for backward, the nearest anchor before this value is
//             normally a node that forward outputs need. The value then remains forward. In a
//             joint graph, writes to inputs also remain forward, unless they are members. These
//             writes are executed at the end of forward, wherever they are in the schedule.
//   forward:  All other nodes. Exception: a getitem that is not a member has the phase of its
//             operand.
//
// The inference uses output roles if they are recorded. A test compares the inferred phases with
// PyTorch's phase marks. The two differ only for one kind of marked node: a node that is marked
// backward, does not depend on a gradient, and was moved to a place before the seed. The inference
// makes this node forward. The inference also finds the seed, although autograd makes the seed
// before it starts to mark nodes. README.md has the figures. O((nodes + edges) * (1 + candidates
// for seeds / 64)).
PhaseMap infer_phases(const Graph& graph);
PhaseMap infer_phases(const Graph& graph, const StorageMap& storages);

// The nodes that depend on gradients. Phase marks of the nodes are ignored.
struct GradientReach {
  // The outputs of forward. In a joint graph these are the first `num_forward_outputs` outputs, if
  // that number is recorded. Otherwise these are the outputs that meet three conditions:
  // - The output does not have the role of a gradient.
  // - The output depends on no seed.
  // - The output does not have the phase mark backward. This condition does not apply to an output
  //   with the role kLoss or kUser (OutputRole).
  // In a joint graph, the list ends before the first output that violates a condition.
  std::vector<NodeId> forward_outputs;
  IdMap<NodeId, uint64_t> depends;  // not 0 if the node is a seed or depends on a seed
};
// Returns the nodes that depend on a seed. Seeds are the tangents or the gradient of the loss, as
// infer_phases() finds them. The complexity is that of infer_phases(). Returns nothing if the graph
// has no seed.
std::optional<GradientReach> reach_of_gradients(const Graph& graph, const StorageMap& storages);

// Whether the graph is joint. A joint graph contains forward and backward, and its inputs are
// primals and tangents. The recorded kind of the graph decides. If no kind is recorded, a graph
// with a recorded tangent is joint. O(nodes).
bool is_joint(const Graph& graph);

// Returns the placeholders whose new values are outputs of the graph. These outputs have the role
// mutation. In a joint graph, only outputs of forward are considered. The runtime writes the new
// values into the inputs. In a joint graph, the runtime writes them between forward and backward.
// O(inputs + outputs).
std::vector<NodeId> inputs_written_by_runtime(const Graph& graph);

// Whether a graph of this kind may contain a backward pass that infer_phases() can find.
bool may_hold_backward(const Graph& graph);

// Returns the phases for a pass that must not mix forward and backward. These are the phases of
// infer_phases() if the graph has no marks and may contain a backward pass. Otherwise they are the
// phases of analyze_phases(), with two corrections:
// - If a forward output depends on a node, the node is forward, even if its phase mark differs.
// - If a call without a phase mark depends on a backward node, the call is backward.
PhaseMap resolve_phases(const Graph& graph);
PhaseMap resolve_phases(const Graph& graph, const StorageMap& storages);
PhaseMap resolve_phases(const Graph& graph, const StorageSource& storages);

// Whether the node carries no phase mark. O(1).
bool has_no_phase_mark(const Node& node);

// Whether some node of the graph is backward. O(nodes).
bool holds_backward(const Graph& graph, const PhaseMap& phases);

// analyze_phases() treats unmarked calls after the last forward mark of a joint graph as backward.
// If such a call is forward in `phases`, this function marks the call as forward. Compute `phases`
// before the graph changes. Returns the number of calls that this function marked. O(nodes).
size_t mark_rest_of_forward(Graph& graph, const PhaseMap& phases);

// Writes into the graph the phases of the nodes in PhaseMap::overruled. In graphs that are not
// joint, also writes the phases of unmarked calls that depend on a gradient. The markers from the
// tracer (Node::phase_markers) stay unchanged. Returns the number of changed nodes. O(nodes).
size_t correct_phases(Graph& graph, const PhaseMap& phases);

// Writes the inferred phases `phases` into a graph whose nodes have no phase marks. Each node
// except the output node also gets the marker PhaseMarker::kInferred. Later passes and programs
// then read these phases. Returns the number of marked nodes. O(nodes).
size_t mark_phases(Graph& graph, const PhaseMap& phases);

}  // namespace fxopt
