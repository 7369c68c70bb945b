#include "ir/values/complete_values.h"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/values/values.h"

namespace fxopt {
namespace {

constexpr std::string_view kNativeDropout = "aten.native_dropout.default";
constexpr std::string_view kSavesState = "higher_order.run_and_save_rng_state";  // returns the state, then the result

class Completer {
 public:
  explicit Completer(Graph& graph) : graph_(graph), module_(graph.module()) {}

  size_t run() {
    size_t completed = 0;
    for (const NodeId node : graph_.nodes()) {
      if (!graph_[node].is_call() || graph_.value(node).kind != ValueKind::kAbsent) continue;
      const Op& op = graph_.op(node);
      const Arg* operand = op.operator_arg < 0 ? nullptr : graph_.arg(node, static_cast<size_t>(op.operator_arg));
      if (operand == nullptr || !operand->is(ArgKind::kOp)) continue;
      const Op* runs = find_builtin_op(module_.text(operand->as_string()));
      if (runs == nullptr || !runs->schema.has_value()) continue;
      completed += complete(node, op, *runs) ? 1 : 0;
    }
    return completed;
  }

 private:
  bool complete(NodeId node, const Op& op, const Op& runs) {
    const Arg* input = graph_.arg(node, static_cast<size_t>(op.operator_arg) + 1);
    const Tensor* given =
        input != nullptr && input->is(ArgKind::kNode) ? single_tensor(graph_, input->as_node()) : nullptr;
    input_ = given == nullptr ? Tensor() : *given;
    if (op.name != kSavesState) {
      const std::optional<Value> result = result_of(node, runs);
      if (result.has_value()) graph_[node].value = graph_.pool().append_value(*result);
      return result.has_value();
    }
    const NodeId state = element(node, 0), result_node = element(node, 1);
    if (!state.is_valid() || graph_.value(state).kind == ValueKind::kAbsent || !result_node.is_valid()) return false;
    const std::optional<Value> result = result_of(result_node, runs);
    if (!result.has_value()) return false;
    graph_[node].value = tuple({copy(state), *result});
    if (graph_.value(result_node).kind == ValueKind::kAbsent) {
      graph_[result_node].value = graph_.pool().append_value(*result);
    }
    return true;
  }

  // Returns the result of the operator `runs`, as recorded by the getitems of `node`.
  std::optional<Value> result_of(NodeId node, const Op& runs) {
    if (graph_.value(node).kind != ValueKind::kAbsent) return copy(node);
    const size_t count = runs.schema->returns.size();
    if (count < 2) return std::nullopt;
    std::vector<Value> elements;
    for (size_t i = 0; i < count; ++i) {
      const NodeId taken = element(node, i);
      if (taken.is_valid() && graph_.value(taken).kind != ValueKind::kAbsent) {
        elements.push_back(copy(taken));
        continue;
      }
      const std::optional<Value> made = known_element(runs, i);
      if (!made.has_value()) return std::nullopt;
      elements.push_back(*made);
    }
    return graph_.pool().value(tuple(elements));
  }

  // Returns the getitem that takes the element, or an invalid id if none exists.
  NodeId element(NodeId node, size_t index) const {
    for (const NodeId user : graph_.users(node)) {
      if (!graph_[user].is_call() || graph_.op(user).view != ViewKind::kProjection) continue;
      const Arg* at = graph_.arg(user, 1);
      if (at != nullptr && at->is(ArgKind::kInt) && at->as_int() == static_cast<int64_t>(index)) return user;
    }
    return NodeId();
  }

  Value copy(NodeId node) {
    const ValueId id = graph_.pool().copy_value(graph_.pool(), graph_[node].value, [](Tensor&) {});
    return graph_.pool().value(id);
  }

  ValueId tuple(const std::vector<Value>& elements) {
    Value value;
    value.kind = ValueKind::kTuple;
    value.first = graph_.pool().append_values(elements).index();
    value.count = static_cast<uint32_t>(elements.size());
    return graph_.pool().append_value(value);
  }

  // Derives an element that no getitem shows from the operator's input.
  std::optional<Value> known_element(const Op& runs, size_t index) {
    if (runs.name != kNativeDropout || index > 1 || !input_.sizes.is_valid()) return std::nullopt;
    Tensor made;
    made.dtype = index == 0 ? input_.dtype : DType::kBool;
    made.device = input_.device;
    made.sizes = input_.sizes;
    made.strides = module_.contiguous_strides(made.sizes);
    return graph_.pool().tensor_value(made);
  }

  Graph& graph_;
  Module& module_;
  Tensor input_;  // the operator's first input; it has no sizes if the input is unknown
};

}  // namespace

size_t complete_values(Module& module) {
  size_t completed = 0;
  for (const GraphId id : module.graphs()) completed += Completer(module.graph(id)).run();
  return completed;
}

}  // namespace fxopt
