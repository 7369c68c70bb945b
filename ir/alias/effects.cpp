#include "ir/alias/effects.h"

#include <algorithm>
#include <set>
#include <span>
#include <string_view>

#include "ir/graph/module.h"
#include "ir/values/call_args.h"
#include "ir/values/elements.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

bool names_any(const Op& op, std::span<const std::string_view> parts) {
  return std::ranges::any_of(parts, [&op](std::string_view part) { return op.name.find(part) != std::string::npos; });
}

ViewKind view_of_getitem(const Graph& graph, NodeId node) {
  const Arg* parent = graph.arg(node, 0);
  const Arg* key = graph.arg(node, 1);
  if (parent == nullptr || !parent->is(ArgKind::kNode) || key == nullptr) return ViewKind::kProjection;
  const Value& from = graph.value(parent->as_node());
  const bool is_basic =
      is_basic_index(graph, *key, [&graph](NodeId index) { return graph.value(index).kind == ValueKind::kSymbolic; });
  if (from.kind == ValueKind::kTensor) return is_basic ? ViewKind::kView : ViewKind::kMaybeView;
  if (from.kind != ValueKind::kAbsent || graph.op(parent->as_node()).is_multi_output) return ViewKind::kProjection;
  // No value is recorded. A tensor, list, tuple or boolean as index suggests that a tensor is
  // indexed, because these rarely index a tuple.
  const bool is_tensor_index =
      key->is(ArgKind::kNode) || key->is(ArgKind::kList) || key->is(ArgKind::kTuple) || key->is(ArgKind::kBool);
  if (is_tensor_index && !is_basic) return ViewKind::kMaybeView;
  // Only tensors take a tuple, an Ellipsis or None as index. Tuples and lists take integers as
  // well.
  return key->is(ArgKind::kTuple) || key->is(ArgKind::kEllipsis) || key->is(ArgKind::kNone) ? ViewKind::kView
                                                                                            : ViewKind::kProjection;
}

// Returns the recorded result that is the same tensor as the argument at `position`. Returns
// nullptr if no such result exists. Other results do not show the argument's metadata.
const Tensor* result_of(const Graph& graph, NodeId node, uint8_t position) {
  const Op& op = graph.op(node);
  const Value& value = graph.value(node);
  const auto found = std::ranges::find(op.aliases, position);
  if (found == op.aliases.end()) return nullptr;
  if (value.kind == ValueKind::kTensor) return op.aliases.size() == 1 ? &graph.pool().tensor(value) : nullptr;
  const size_t element = static_cast<size_t>(found - op.aliases.begin());
  if (!has_elements(value) || element >= value.count) return nullptr;
  const Value& child = graph.pool().value(ValueId(value.first + element));
  return child.kind == ValueKind::kTensor ? &graph.pool().tensor(child) : nullptr;
}

// Whether the recorded values show that the call leaves the metadata of a written argument
// unchanged.
bool is_as_left(const Graph& graph, NodeId node, uint8_t position, NodeId written) {
  const Tensor* before = single_tensor(graph, written);
  const Tensor* after = result_of(graph, node, position);
  return before != nullptr && after != nullptr && same_metadata(graph.module(), *before, *after);
}

bool keeps_metadata(const Graph& graph, NodeId node, uint8_t position) {
  const CallArg arg = CallArgs(graph, node)[position];
  const bool is_out = arg.described() != nullptr && arg.described()->is_out();
  if (graph.op(node).is_builtin() && !is_out) return true;
  if (!arg.as_node().is_valid()) return !arg.is_given() || !arg.given()->has_children();
  return is_as_left(graph, node, position, arg.as_node());
}

}  // namespace

ViewKind view_of_call(const Graph& graph, NodeId node) {
  const ViewKind view = graph.op(node).view;
  return view == ViewKind::kProjection ? view_of_getitem(graph, node) : view;
}

bool is_basic_index(const Graph& graph, const Arg& index, const std::function<bool(NodeId node)>& is_integer) {
  switch (index.kind()) {
    case ArgKind::kInt:
    case ArgKind::kExpr:
    case ArgKind::kSlice:
    case ArgKind::kNone:
    case ArgKind::kEllipsis:
      return true;
    case ArgKind::kNode:
      return is_integer(index.as_node());
    case ArgKind::kTuple:
      return std::ranges::all_of(graph.pool().children(index), [&](const Arg& part) {
        return !part.is(ArgKind::kTuple) && is_basic_index(graph, part, is_integer);
      });
    default:
      return false;
  }
}

NodeId find_reader(const Graph& graph, std::vector<NodeId> from, const std::function<bool(NodeId reader)>& is_it) {
  std::set<NodeId> asked;
  while (!from.empty()) {
    const NodeId node = from.back();
    from.pop_back();
    for (const NodeId reader : graph.users(node)) {
      if (!asked.insert(reader).second) continue;
      if (is_it(reader)) return reader;
      if (graph[reader].is_call() && view_of_call(graph, reader) != ViewKind::kNone) from.push_back(reader);
    }
  }
  return NodeId();
}

NodeId whole_of(const Graph& graph, NodeId node) {
  if (!graph[node].is_call() || view_of_call(graph, node) != ViewKind::kProjection) return NodeId();
  return first_argument(graph, node);
}

bool may_hand_on(const Graph& graph, NodeId node) {
  if (!graph[node].is_call()) return false;
  const HandsOn kind = graph.op(node).hands_on;
  if (kind == HandsOn::kNothing) return false;
  const ValueKind value = graph.value(node).kind;
  if (value == ValueKind::kAbsent || value == ValueKind::kList || value == ValueKind::kTuple) return true;
  return kind == HandsOn::kAnything && (value == ValueKind::kTensor || value == ValueKind::kOpaque);
}

bool shares_where_it_can(const Graph& graph, NodeId node) {
  const Op& op = graph.op(node);
  if (!op.schema.has_value() || op.schema->returns.empty() || op.schema->returns[0].alias_set.empty()) return false;
  const CallArg copy = CallArgs(graph, node).named("copy");
  return copy.is_missing() || copy.as_bool() == false;
}

bool is_unrecorded_tuple(const Graph& graph, NodeId node) {
  const Op& op = graph.op(node);
  return op.schema.has_value() && op.schema->returns.size() > 1 && graph.value(node).kind == ValueKind::kAbsent;
}

void collect_metadata_changes(const Graph& graph, NodeId node, std::vector<uint8_t>& positions) {
  positions.clear();
  const Op& op = graph.op(node);
  if (op.changes_metadata) positions.push_back(0);
  for (const uint8_t position : op.writes) {
    if (position == 0 && op.changes_metadata) continue;
    if (!keeps_metadata(graph, node, position)) positions.push_back(position);
  }
}

bool is_random_call(const Graph& graph, NodeId node) {
  const Op& op = graph.op(node);
  if (!op.has(Effect::kRandom)) return false;
  if (op.dropout_arg < 0) return true;
  return CallArgs(graph, node)[static_cast<size_t>(op.dropout_arg)].as_double() != 0.0;
}

bool is_recorded_draw(const Graph& graph, NodeId node) {
  const NodeExtra* extra = graph.extra(node);
  return extra != nullptr && extra->rng.has_value() && extra->rng->offset.is_known();
}

bool writes_only_metadata(const Graph& graph, NodeId node) {
  const Op& op = graph.op(node);
  return op.changes_metadata && op.compute == ComputeClass::kView;
}

bool reads_shape_alone(const Graph& graph, NodeId node) {
  if (graph[node].kind != NodeKind::kCallFunction) return false;
  const Op& op = graph.op(node);
  if (op.compute != ComputeClass::kFactory || !op.is_pure() || !op.schema.has_value()) return false;
  return !op.schema->args.empty() && op.schema->args[0].is_tensor() && op.schema->args[0].name == "self";
}

bool is_writing_call(const Graph& graph, NodeId node) {
  const Op& op = graph.op(node);
  if (op.writes.empty()) return false;
  if (op.training_arg < 0) return true;
  return CallArgs(graph, node)[static_cast<size_t>(op.training_arg)].as_bool() != false;
}

bool sees_storage(const Graph& graph, NodeId node) {
  if (graph[node].kind == NodeKind::kOutput) return false;
  if (graph[node].kind != NodeKind::kCallFunction) return true;
  const Op& op = graph.op(node);
  if (op.view == ViewKind::kProjection) return false;
  if (!op.is_builtin() || !op.schema.has_value() || op.has_subgraphs) return true;
  if (op.changes_metadata || op.moves_storage || op.clones_storage || op.has(Effect::kOpaque | Effect::kBarrier)) {
    return true;
  }
  constexpr std::string_view kSeesMore[] = {"storage_offset"};
  return sets_strides(op) || names_any(op, kSeesMore);
}

bool sets_strides(const Op& op) {
  constexpr std::string_view kSetters[] = {"as_strided", "_reshape_alias", "_reinterpret_tensor"};
  return names_any(op, kSetters);
}

bool needs_aligned_place(const Graph& graph, NodeId node) {
  if (!graph[node].is_call()) return false;
  const std::string_view name = graph.op(node).name;
  return name == "aten.view.dtype" || name == "aten.view_as_complex.default" ||
         name == "prims.view_element_type.default";
}

}  // namespace fxopt
