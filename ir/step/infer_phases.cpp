// See infer_phases() in phases.h for the rules and their reasons.

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "ir/alias/effects.h"
#include "ir/alias/reach.h"
#include "ir/alias/storages.h"
#include "ir/graph/module.h"
#include "ir/step/phases.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

// Ops with which autograd and its users create the gradient of a loss. The first table has ops that
// take the loss, and the second table has ops without operands.
constexpr std::array<std::string_view, 2> kSeedsLikeLoss = {"aten.ones_like.default", "aten.full_like.default"};
constexpr std::array<std::string_view, 3> kConstantSeeds = {"aten.full.default", "aten.ones.default",
                                                            "aten.scalar_tensor.default"};
constexpr size_t kBits = 64;  // candidates followed in one sweep

struct Leaf {
  NodeId node;
  size_t place = 0;  // among the leaves of the output
  OutputRole role = OutputRole::kUnspecified;
};

struct Candidate {
  NodeId node;
  NodeId loss;  // invalid for a constant
};

// Whether the node's value may be a loss: one floating-point element, or no recorded value.
bool may_be_loss(const Graph& graph, NodeId node) {
  if (graph.value(node).kind == ValueKind::kAbsent) return true;
  const Tensor* tensor = single_tensor(graph, node);
  return tensor != nullptr && is_floating(tensor->dtype) && has_one_element(graph, node);
}

template <size_t N>
bool names(const std::array<std::string_view, N>& table, std::string_view name) {
  return std::ranges::find(table, name) != table.end();
}

class PhaseInference {
 public:
  PhaseInference(const Graph& graph, const StorageMap& storages)
      : graph_(graph), storages_(storages), output_(graph.output()) {
    map_.phase = IdMap<NodeId, Phase>(graph.num_ids(), Phase::kForward);
    if (!output_.is_valid()) return;
    const std::vector<NodeId> outputs = output_leaves(graph);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].is_valid()) continue;
      leaves_.push_back({outputs[i], i, i < graph.outputs.size() ? graph.outputs[i].role : OutputRole::kUnspecified});
    }
    for (const Leaf& leaf : leaves_) {
      has_roles_ = has_roles_ || leaf.role == OutputRole::kLoss || leaf.role == OutputRole::kGradient;
    }
  }

  // Implements reach_of_gradients(). The graph may have marks.
  std::optional<GradientReach> reach() {
    if (!find_closure()) return std::nullopt;
    std::vector<NodeId> outputs;
    for (const Leaf& leaf : leaves_) {
      const bool is_recorded = graph_.num_forward_outputs.has_value() && is_joint_;
      const bool is_forward = is_recorded ? static_cast<int64_t>(leaf.place) < *graph_.num_forward_outputs
                                          : is_forward_output(leaf) && !may_be_marked_gradient(leaf);
      if (is_forward) outputs.push_back(leaf.node);
      if (!is_forward && is_joint_ && leaf.node.is_valid()) break;  // gradients come last
    }
    return GradientReach{std::move(outputs), std::move(closure_.masks)};
  }

  PhaseMap run() {
    if (!find_closure()) return std::move(map_);
    for (const NodeId node : graph_.nodes()) {
      if (in_closure(node)) map_.phase[node] = Phase::kBackward;
    }
    add_private_nodes();
    for (const NodeId node : graph_.nodes()) follow_parent(node);
    return std::move(map_);
  }

 private:
  // An output that is marked backward may be a gradient that depends on no seed.
  bool may_be_marked_gradient(const Leaf& leaf) const {
    return graph_[leaf.node].phase == Phase::kBackward && leaf.role != OutputRole::kLoss &&
           leaf.role != OutputRole::kUser;
  }

  // Returns false if the graph has no seed, and therefore no backward.
  bool find_closure() {
    find_seeds();
    if (map_.seeds.empty()) return false;
    std::vector<ReachStart> starts;
    for (const NodeId seed : map_.seeds) starts.push_back({seed, 1});
    closure_ = reach_forward(graph_, storages_, starts);
    return true;
  }

  bool in_closure(NodeId node) const { return node != output_ && closure_.masks[node] != 0; }

  // -- seeds

  void find_seeds() {
    for (const NodeId node : graph_.nodes()) {
      if (is_tangent(graph_, node)) map_.seeds.push_back(node);
    }
    is_joint_ = !map_.seeds.empty();
    if (is_joint_) return;
    std::vector<Candidate> candidates;
    for (const NodeId node : graph_.nodes()) {
      if (!graph_[node].is_call() || !names(kSeedsLikeLoss, graph_.op(node).name)) continue;
      const Arg* loss = graph_.arg(node, 0);
      if (loss == nullptr || !loss->is(ArgKind::kNode) || !may_be_loss(graph_, loss->as_node())) continue;
      candidates.push_back({node, loss->as_node()});
    }
    accept(candidates);
    // A constant seed does not refer to its loss. Therefore constant seeds are searched only in a
    // graph that is known to contain a backward pass.
    if (!map_.seeds.empty() || !is_known_to_hold_backward()) return;
    candidates.clear();
    for (const NodeId node : graph_.nodes()) {
      if (!graph_[node].is_call() || !names(kConstantSeeds, graph_.op(node).name)) continue;
      if (graph_.inputs(node).empty() && may_be_loss(graph_, node)) candidates.push_back({node, NodeId()});
    }
    accept(candidates);
  }

  // How certain a candidate is, best first. A graph's seeds are the candidates with the best grade.
  enum class Grade : uint8_t { kReturnedLoss, kLossOfOutput, kUnreturnedLoss, kNone };

  void accept(const std::vector<Candidate>& candidates) {
    std::vector<Grade> grades(candidates.size(), Grade::kNone);
    Grade best = Grade::kNone;
    for (size_t first = 0; first < candidates.size(); first += kBits) {
      const size_t count = std::min(kBits, candidates.size() - first);
      std::vector<ReachStart> starts, losses;
      for (size_t i = 0; i < count; ++i) {
        starts.push_back({candidates[first + i].node, uint64_t{1} << i});
        if (candidates[first + i].loss.is_valid()) losses.push_back({candidates[first + i].loss, uint64_t{1} << i});
      }
      const Reach from_seed = reach_forward(graph_, storages_, starts);
      const Reach from_loss = reach_forward(graph_, storages_, losses);
      for (size_t i = 0; i < count; ++i) {
        grades[first + i] = grade(candidates[first + i], from_seed, from_loss, uint64_t{1} << i);
        best = std::min(best, grades[first + i]);
      }
    }
    std::vector<Candidate> chosen;
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (grades[i] == best && best != Grade::kNone) chosen.push_back(candidates[i]);
    }
    add_outer(chosen);
  }

  // If another seed's loss depends on a seed, this seed belongs to a backward pass inside
  // forward, such as autograd.grad of an energy.
  void add_outer(const std::vector<Candidate>& chosen) {
    for (size_t first = 0; first < chosen.size(); first += kBits) {
      const size_t count = std::min(kBits, chosen.size() - first);
      std::vector<ReachStart> starts;
      for (size_t i = 0; i < count; ++i) starts.push_back({chosen[first + i].node, uint64_t{1} << i});
      const Reach from_seed = reach_forward(graph_, storages_, starts);
      uint64_t inner = 0;
      for (const Candidate& other : chosen) inner |= other.loss.is_valid() ? from_seed.masks[other.loss] : 0;
      for (size_t i = 0; i < count; ++i) {
        if ((inner >> i & 1) == 0) map_.seeds.push_back(chosen[first + i].node);
      }
    }
  }

  Grade grade(const Candidate& candidate, const Reach& from_seed, const Reach& from_loss, uint64_t bit) const {
    bool leads_to_gradient = false;
    Grade result = Grade::kUnreturnedLoss;
    for (const Leaf& leaf : leaves_) {
      if ((from_seed.masks[leaf.node] & bit) != 0) {
        if (leaf.role == OutputRole::kLoss) return Grade::kNone;
        const bool is_gradient = has_roles_ ? leaf.role == OutputRole::kGradient : leaf.node != candidate.node;
        leads_to_gradient = leads_to_gradient || is_gradient;
        continue;
      }
      if (!candidate.loss.is_valid()) {
        const bool precedes = graph_.position(leaf.node) < graph_.position(candidate.node);
        if (precedes && may_be_loss(graph_, leaf.node)) result = std::min(result, Grade::kLossOfOutput);
      } else if (storages_.share_storage(leaf.node, candidate.loss)) {
        result = Grade::kReturnedLoss;
      } else if ((from_loss.masks[leaf.node] & bit) != 0) {
        result = std::min(result, Grade::kLossOfOutput);
      }
    }
    if (!leads_to_gradient) return Grade::kNone;
    // The candidate may be an ordinary ones_like. If the loss is not returned, the candidate is
    // accepted only in a graph that is known to contain a backward pass.
    if (result == Grade::kUnreturnedLoss && !(candidate.loss.is_valid() && is_known_to_hold_backward())) {
      return Grade::kNone;
    }
    return result;
  }

  bool is_known_to_hold_backward() const { return has_roles_ || graph_.kind == GraphKind::kForwardLossBackward; }

  // -- nodes outside the closure that only backward reads

  void add_private_nodes() {
    const IdMap<NodeId, bool> between = nodes_between_backward();
    // Buffers that a forward node after the current node reads.
    IdMap<BufferId, bool> read_by_forward(storages_.num_buffers(), false);
    IdMap<NodeId, bool> returned(graph_.num_ids(), false);  // as something other than a gradient
    for (const Leaf& leaf : leaves_) {
      if (is_forward_output(leaf)) returned[leaf.node] = true;
    }
    for (NodeId node = graph_.last(); node.is_valid(); node = graph_.prev(node)) {
      if (node == output_) continue;
      if (returned.get(node)) note_reads(storages_.buffers(node), read_by_forward);
      if (map_.is_backward(node)) continue;
      const bool is_private = between.get(node) && !returned.get(node) && !updates_input(node) &&
                              only_backward_reads(node, read_by_forward);
      if (is_private) {
        map_.phase[node] = Phase::kBackward;
      } else {
        note_reads(storages_.reads(node), read_by_forward);
      }
    }
  }

  // Whether the node is a write to an input of a joint graph. The runtime performs these writes
  // when forward ends, although they are last in the schedule.
  bool updates_input(NodeId node) const {
    return is_joint_ && std::ranges::any_of(storages_.writes(node), [this](BufferId buffer) {
             return storages_.buffer(buffer).source != BufferSource::kNode;
           });
  }

  static void note_reads(std::span<const BufferId> buffers, IdMap<BufferId, bool>& read) {
    for_each_buffer(buffers, [&](BufferId buffer) { read[buffer] = true; });
  }

  bool only_backward_reads(NodeId node, const IdMap<BufferId, bool>& read_by_forward) const {
    for (UseId use = graph_.first_use(node); use.is_valid(); use = graph_.use(use).next) {
      const NodeId user = graph_.use(use).user;
      if (user != output_ && !map_.is_backward(user)) return false;
    }
    for (const BufferId buffer : storages_.writes(node)) {
      if (read_by_forward[buffer]) return false;
    }
    return true;
  }

  bool is_forward_output(const Leaf& leaf) const {
    return leaf.role != OutputRole::kGradient && !in_closure(leaf.node);
  }

  // Returns the calls and attributes whose nearest earlier anchor is a member of the closure. An
  // anchor is a member, or an ancestor of a forward output.
  IdMap<NodeId, bool> nodes_between_backward() const {
    IdMap<NodeId, bool> forward_anchor(graph_.num_ids(), false);
    for (const Leaf& leaf : leaves_) {
      if (is_forward_output(leaf)) forward_anchor[leaf.node] = true;
    }
    for (NodeId node = graph_.last(); node.is_valid(); node = graph_.prev(node)) {
      if (!forward_anchor.get(node)) continue;
      graph_.for_each_input(node, [&forward_anchor](NodeId input) { forward_anchor[input] = true; });
    }
    IdMap<NodeId, bool> between(graph_.num_ids(), false);
    bool after_backward = false;
    for (const NodeId node : graph_.nodes()) {
      if (graph_[node].kind == NodeKind::kPlaceholder || node == output_) continue;
      if (in_closure(node)) {
        after_backward = true;
      } else if (forward_anchor.get(node)) {
        after_backward = false;
      } else {
        between[node] = after_backward;
      }
    }
    return between;
  }

  // A getitem has the phase of its operand, wherever the getitem is.
  void follow_parent(NodeId node) {
    const NodeId whole = whole_of(graph_, node);
    if (whole.is_valid() && !in_closure(node)) map_.phase[node] = map_.phase.get(whole);
  }

  const Graph& graph_;
  const StorageMap& storages_;
  NodeId output_;
  std::vector<Leaf> leaves_;
  bool has_roles_ = false;
  bool is_joint_ = false;
  Reach closure_;
  PhaseMap map_;
};

}  // namespace

PhaseMap infer_phases(const Graph& graph) { return infer_phases(graph, StorageMap(graph)); }

std::optional<GradientReach> reach_of_gradients(const Graph& graph, const StorageMap& storages) {
  return PhaseInference(graph, storages).reach();
}

PhaseMap infer_phases(const Graph& graph, const StorageMap& storages) { return PhaseInference(graph, storages).run(); }

}  // namespace fxopt
