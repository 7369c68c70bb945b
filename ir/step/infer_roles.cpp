// See infer_roles.h for the rules and their reasons.

#include "ir/step/infer_roles.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "ir/alias/reach.h"
#include "ir/alias/storages.h"
#include "ir/graph/module.h"
#include "ir/step/phases.h"
#include "ir/values/call_args.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

constexpr size_t kMaxTangents = 256;  // bounds the search for the number of tangents

class RoleInference {
 public:
  RoleInference(const Graph& graph, const StorageMap& storages) : graph_(graph), storages_(storages) {
    for (const NodeId node : placeholders_of(graph)) {
      roles_.inputs.push_back({node, InputRole::kUnspecified, false});
    }
    for (const NodeId node : output_leaves(graph)) {
      roles_.outputs.push_back({node, OutputRole::kUnspecified, NodeId()});
    }
  }

  RoleMap run() {
    for (DerivedInput& input : roles_.inputs) look_alone(input);
    for (DerivedOutput& output : roles_.outputs) find_mutation(output);
    if (graph_.kind == GraphKind::kJoint) {
      find_tangents();
    } else if (graph_.kind == GraphKind::kUnspecified || graph_.kind == GraphKind::kForwardLossBackward) {
      find_gradients();
    }
    return std::move(roles_);
  }

 private:
  // -- one placeholder or output by itself

  void look_alone(DerivedInput& input) {
    input.mutated =
        any_buffer(storages_.buffers(input.node), [this](BufferId buffer) { return storages_.is_written(buffer); });
    if (graph_.value(input.node).kind == ValueKind::kSymbolic) {
      input.role = InputRole::kSymbol;
    } else if (graph_.kind == GraphKind::kBackward) {
      const Tensor* tensor = single_tensor(graph_, input.node);
      if (tensor != nullptr && !is_floating(tensor->dtype)) input.role = InputRole::kSavedValue;
    } else {
      input.role = role_by_users(input.node);
    }
  }

  // Returns the role in which all users read the node, or kUnspecified if the users differ.
  InputRole role_by_users(NodeId node) const {
    const std::vector<NodeId> users = graph_.users(node);
    if (users.empty()) return InputRole::kUnspecified;
    const InputRole role = role_in(users.front(), node);
    const bool agree = std::ranges::all_of(users, [&](NodeId user) { return role_in(user, node) == role; });
    return agree ? role : InputRole::kUnspecified;
  }

  InputRole role_in(NodeId user, NodeId node) const {
    const Op& op = graph_.op(user);
    const auto is_it = [node](const Arg* arg) {
      return arg != nullptr && arg->is(ArgKind::kNode) && arg->as_node() == node;
    };
    // An operator that runs another operator with a given generator state. The state is the
    // argument before the operator, or the keyword argument rng_state.
    if (op.operator_arg == 1 && is_it(graph_.arg(user, 0))) return InputRole::kRngState;
    if (op.operator_arg >= 0 && is_it(graph_.kwarg(user, "rng_state"))) return InputRole::kRngState;
    if (op.compute != ComputeClass::kRandom || !op.schema.has_value()) return InputRole::kUnspecified;
    for (size_t i = 0; i < op.schema->args.size(); ++i) {
      if (!is_it(call_argument(graph_, user, i))) continue;
      const std::string& name = op.schema->args[i].name;
      if (name == "seed" || name == "seeds") return InputRole::kSeed;
      return name == "offset" ? InputRole::kRngOffset : InputRole::kUnspecified;
    }
    return InputRole::kUnspecified;
  }

  void find_mutation(DerivedOutput& output) {
    if (!output.node.is_valid()) return;
    const std::span<const BufferId> buffers = storages_.buffers(output.node);
    if (buffers.size() != 1 || !buffers[0].is_valid() || !storages_.is_written(buffers[0])) return;
    const Buffer& buffer = storages_.buffer(buffers[0]);
    if (buffer.source != BufferSource::kPlaceholder) return;
    output.role = OutputRole::kMutation;
    output.of = buffer.producer;
  }

  // -- joint graphs

  // One possible division of a joint graph's placeholders and outputs.
  struct Reading {
    size_t tangents = 0;                               // the last placeholders
    size_t forward = 0;                                // the first outputs
    std::vector<std::pair<size_t, size_t>> gradients;  // output, placeholder
  };

  void find_tangents() {
    std::optional<Reading> found;
    for (size_t count = 1; count <= std::min(roles_.inputs.size(), kMaxTangents); ++count) {
      const Tensor* tensor = single_tensor(graph_, roles_.inputs[roles_.inputs.size() - count].node);
      if (tensor == nullptr || !is_floating(tensor->dtype)) break;
      std::optional<Reading> reading = read_joint(count);
      if (!reading.has_value() || !tangents_fit(*reading) || !dependencies_fit(*reading)) continue;
      if (found.has_value()) return;  // more than one division is possible
      found = std::move(reading);
    }
    if (found.has_value()) take_joint(*found);
  }

  bool same_shape(NodeId a, NodeId b) const {
    const Tensor* left = single_tensor(graph_, a);
    const Tensor* right = single_tensor(graph_, b);
    return left != nullptr && right != nullptr && left->dtype == right->dtype &&
           same_sizes(graph_.module(), left->sizes, right->sizes);
  }

  bool is_opaque(NodeId node) const { return graph_.value(node).kind == ValueKind::kOpaque; }

  // If a component of a tensor subclass is not a tensor, the graph returns the component in place
  // of a gradient.
  bool fits_gradient(NodeId gradient, NodeId input) const {
    return is_opaque(input) ? is_opaque(gradient) : same_shape(gradient, input);
  }

  // Matches outputs with placeholders, starting at the last output and the last placeholder before
  // the tangents. One None replaces all components of a tensor subclass. The components that are
  // not tensors come last.
  std::optional<Reading> read_joint(size_t tangents) const {
    Reading reading;
    reading.tangents = tangents;
    size_t output = roles_.outputs.size();
    for (size_t input = roles_.inputs.size() - tangents; input > 0;) {
      if (output-- == 0) return std::nullopt;
      const NodeId gradient = roles_.outputs[output].node;
      if (!gradient.is_valid()) {
        while (input > 1 && is_opaque(roles_.inputs[input - 1].node)) --input;
        --input;
        continue;
      }
      if (!fits_gradient(gradient, roles_.inputs[--input].node)) return std::nullopt;
      reading.gradients.emplace_back(output, input);
    }
    reading.forward = output;
    return reading;
  }

  // Whether forward outputs have the shapes of the tangents, in the same order.
  bool tangents_fit(const Reading& reading) const {
    size_t next = roles_.inputs.size() - reading.tangents;
    for (size_t i = 0; i < reading.forward && next < roles_.inputs.size(); ++i) {
      const NodeId output = roles_.outputs[i].node;
      if (output.is_valid() && same_shape(output, roles_.inputs[next].node)) ++next;
    }
    return next == roles_.inputs.size();
  }

  bool dependencies_fit(const Reading& reading) const {
    std::vector<ReachStart> starts;
    for (size_t i = roles_.inputs.size() - reading.tangents; i < roles_.inputs.size(); ++i) {
      starts.push_back({roles_.inputs[i].node, 1});
    }
    const Reach closure = reach_forward(graph_, storages_, starts);
    bool has_gradient = false;
    for (size_t i = 0; i < roles_.outputs.size(); ++i) {
      const NodeId node = roles_.outputs[i].node;
      if (!node.is_valid()) continue;
      const bool is_gradient = i >= reading.forward && !is_opaque(node);
      if ((closure.masks[node] != 0) != is_gradient) return false;
      has_gradient = has_gradient || is_gradient;
    }
    return has_gradient;
  }

  void take_joint(const Reading& reading) {
    for (size_t i = roles_.inputs.size() - reading.tangents; i < roles_.inputs.size(); ++i) {
      roles_.inputs[i].role = InputRole::kTangent;
    }
    for (const auto& [output, input] : reading.gradients) take_gradient(roles_.outputs[output], roles_.inputs[input]);
    if (reading.tangents != 1) return;
    const NodeId tangent = roles_.inputs.back().node;
    DerivedOutput* loss = nullptr;
    for (size_t i = 0; i < reading.forward; ++i) {
      const NodeId node = roles_.outputs[i].node;
      if (!node.is_valid() || !has_one_element(graph_, node) || !same_shape(node, tangent)) continue;
      if (loss != nullptr) return;  // several outputs fit the tangent
      loss = &roles_.outputs[i];
    }
    if (loss != nullptr) loss->role = OutputRole::kLoss;
  }

  static void take_gradient(DerivedOutput& gradient, DerivedInput& of) {
    gradient.role = OutputRole::kGradient;
    gradient.of = of.node;
    of.role = InputRole::kParameter;
  }

  // -- graphs that hold their own backward pass

  void find_gradients() {
    const PhaseMap phases = infer_phases(graph_, storages_);
    if (phases.seeds.empty()) return;
    std::vector<ReachStart> starts;
    for (const NodeId seed : phases.seeds) starts.push_back({seed, 1});
    const Reach closure = reach_forward(graph_, storages_, starts);
    std::vector<NodeId> losses;
    for (const NodeId seed : phases.seeds) {
      const std::vector<NodeId> made_like = graph_.inputs(seed);
      losses.insert(losses.end(), made_like.begin(), made_like.end());
    }
    std::vector<DerivedOutput*> gradients;
    for (DerivedOutput& output : roles_.outputs) {
      if (!output.node.is_valid()) continue;
      if (closure.masks[output.node] != 0) {
        output.role = OutputRole::kGradient;
        output.of = NodeId();
        gradients.push_back(&output);
      } else if (std::ranges::any_of(losses, [&](NodeId n) { return storages_.share_storage(n, output.node); })) {
        output.role = OutputRole::kLoss;
      }
    }
    match(gradients, candidates());
  }

  // Returns the floating-point placeholders. If the file records that some placeholders require a
  // gradient, returns only those placeholders. Placeholders without users are included: tied
  // weights are several placeholders with one storage.
  std::vector<DerivedInput*> candidates() {
    std::vector<DerivedInput*> floating, marked;
    for (DerivedInput& input : roles_.inputs) {
      const Tensor* tensor = single_tensor(graph_, input.node);
      if (tensor == nullptr || !is_floating(tensor->dtype)) continue;
      floating.push_back(&input);
      if (tensor->requires_grad) marked.push_back(&input);
    }
    return marked.empty() ? floating : marked;
  }

  void match(const std::vector<DerivedOutput*>& gradients, const std::vector<DerivedInput*>& inputs) {
    std::vector<size_t> left(gradients.size()), right(gradients.size());
    size_t next = 0;
    for (size_t i = 0; i < gradients.size(); ++i, ++next) {
      while (next < inputs.size() && !same_shape(gradients[i]->node, inputs[next]->node)) ++next;
      if (next == inputs.size()) return;  // gradients and placeholders differ in their order
      left[i] = next;
    }
    next = inputs.size();
    for (size_t i = gradients.size(); i-- > 0;) {
      do --next;
      while (!same_shape(gradients[i]->node, inputs[next]->node));
      right[i] = next;
    }
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (left[i] == right[i]) take_gradient(*gradients[i], *inputs[left[i]]);
    }
  }

  const Graph& graph_;
  const StorageMap& storages_;
  RoleMap roles_;
};

}  // namespace

RoleMap infer_roles(const Graph& graph) { return infer_roles(graph, StorageMap(graph)); }

RoleMap infer_roles(const Graph& graph, const StorageMap& storages) { return RoleInference(graph, storages).run(); }

std::vector<NodeId> infer_tangents(const Graph& graph, const StorageMap& storages) {
  std::vector<NodeId> tangents;
  if (graph.kind != GraphKind::kJoint && graph.kind != GraphKind::kUnspecified) return tangents;
  for (const DerivedInput& input : infer_roles(graph, storages).inputs) {
    if (input.role == InputRole::kTangent) tangents.push_back(input.node);
  }
  return tangents;
}

void write_tangents(Graph& graph, const std::vector<NodeId>& tangents) {
  graph.kind = GraphKind::kJoint;
  for (const NodeId node : tangents) {
    NodeExtra& extra = graph.mutable_extra(node);
    if (!extra.input.has_value()) extra.input.emplace();
    extra.input->role = InputRole::kTangent;
    extra.input->guessed = true;
  }
}

}  // namespace fxopt
