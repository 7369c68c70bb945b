#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "ir/graph/graph.h"

namespace fxopt {

class StorageMap;

// Gives the storages of a graph where they are needed: of a graph whose phases are all marked they are not.
using StorageSource = std::function<const StorageMap&()>;

// The phase of every node, decided once from what the file says and from dependencies. A node marked by the tracer
// has the phase of its mark, unless a forward output depends on it. `has_markers` tells whether any node of the graph carries one; without markers only inference can
// tell, and every node counts as forward.
struct PhaseMap {
  IdMap<NodeId, Phase> phase;  // never kUnspecified
  bool has_markers = false;
  // Nodes marked forward that depend on a tangent, or on the gradient of the loss: conflicts. In schedule order.
  std::vector<NodeId> conflicts;
  // Nodes marked backward that a forward output depends on, such as autograd.grad inside forward leaves: forward. In schedule order.
  std::vector<NodeId> overruled;
  // Where backward begins: tangent placeholders, or the gradient seeds inference found. In schedule order.
  std::vector<NodeId> seeds;

  bool is_backward(NodeId id) const { return phase[id] == Phase::kBackward; }
};

// Joint graphs: what depends on a tangent placeholder is backward, markers add to it, a forward mark inside the closure
// is a conflict. Unmarked calls that stand after all forward marks, and that no forward output needs, are backward,
// too, but writes: passes of the framework make such for gradients, and so does what Dynamo traced of a backward function. Other graphs: the markers; without a mark a getitem follows what it takes from, a backward graph is
// backward, an optimizer graph optimizer, everything else forward. O(nodes + edges).
PhaseMap analyze_phases(const Graph& graph);
PhaseMap analyze_phases(const Graph& graph, const StorageSource& storages);  // when the caller has them

// Phases of a graph that carries no markers:
//
//   seeds      the gradient of the loss where backward begins: ones_like or full_like of a loss, or a constant of its
//              shape, that leads to gradients (it is none itself, where nothing says what outputs are); tangents in a joint
//              graph. No seed: everything is forward
//   backward   the closure of the seeds, through values and through storages that members write; and the nodes between
//              them that only backward reads: values recomputed from inputs, views of parameters. "Between": the
//              nearest earlier node that is either in the closure or an ancestor of a forward output is in the closure,
//              so that values a forward pass makes only for backward stay forward; and in a joint graph so do writes to
//              inputs, which forward ends with wherever they stand
//   forward    the rest
//
// Output roles are used where the file has them. Against PyTorch's marks on the same graphs this finds every marked
// node and one more, the seed itself, which autograd makes before it starts to mark; only a schedule that moved nodes
// which depend on no gradient before the seed hides them (figures: README.md). O((nodes + edges) * (1 + candidates for
// seeds / 64)).
PhaseMap infer_phases(const Graph& graph);
PhaseMap infer_phases(const Graph& graph, const StorageMap& storages);

// What depends on gradients, whatever marks say.
struct GradientReach {
  // The outputs that forward gives: of a joint graph the first `num_forward_outputs`; else those that are no gradients by their role,
  // depend on no seed and are not marked backward themselves, of a joint graph up to the first other one.
  std::vector<NodeId> forward_outputs;
  IdMap<NodeId, uint64_t> depends;  // not 0: on a seed, or is one
};
// By the seeds of infer_phases(), and as long; nothing where there is none.
std::optional<GradientReach> reach_of_gradients(const Graph& graph, const StorageMap& storages);

// Whether the graph is a joint one: forward and backward, whose inputs are primals and tangents. By its kind; where that is
// not recorded, by a recorded tangent. O(nodes).
bool is_joint(const Graph& graph);

// The placeholders whose new values the graph returns (outputs of role mutation, of a joint graph those of forward): the
// runtime writes them, in a joint graph between forward and backward. O(inputs + outputs).
std::vector<NodeId> inputs_written_by_runtime(const Graph& graph);

// Whether a graph of this kind has a backward pass for infer_phases() to find.
bool may_hold_backward(const Graph& graph);

// analyze_phases(), or infer_phases() for a graph that may hold a backward pass and carries no marker: what a pass asks
// that must not mix phases. A node that a forward output depends on is forward, whatever its mark says; one without a mark that
// depends on a gradient is backward where marks contradict dependences or leave such nodes out.
PhaseMap resolve_phases(const Graph& graph);
PhaseMap resolve_phases(const Graph& graph, const StorageMap& storages);
PhaseMap resolve_phases(const Graph& graph, const StorageSource& storages);

// Whether nothing written on the node says its phase. O(1).
bool has_no_phase_mark(const Node& node);

// Whether some node of the graph is backward. O(nodes).
bool holds_backward(const Graph& graph, const PhaseMap& phases);

// Where some calls of a joint graph are marked forward, calls without a mark after the last of them count as backward
// (analyze_phases()). Marks those that `phases`, of the graph before, has in forward. Returns how many. O(nodes).
size_t mark_rest_of_forward(Graph& graph, const PhaseMap& phases);

// Writes phases that differ from what marks say, or that marks leave out where something is backward: of nodes whose marks are
// overruled, and of calls that depend on a gradient. The tracer's markers stay beside them. Returns how many nodes changed. O(nodes).
size_t correct_phases(Graph& graph, const PhaseMap& phases);

// Writes inferred phases into a graph without markers, as marks of their own kind, so that later passes and programs
// read what this one decided. Returns how many nodes it marked. O(nodes).
size_t mark_phases(Graph& graph, const PhaseMap& phases);

}  // namespace fxopt
