#include "ir/analysis/effects.h"

#include <string_view>

#include "ir/graph/module.h"

namespace fxopt {
namespace {

bool is_zero_text(std::string_view text) { return text == "0" || text == "0." || text == "0.0"; }

const SchemaArg* schema_argument(const Op& op, size_t position) {
  return op.schema.has_value() && position < op.schema->args.size() ? &op.schema->args[position] : nullptr;
}

}  // namespace

const Arg* call_argument(const Graph& graph, NodeId node, size_t position) {
  const SchemaArg* described = schema_argument(graph.op(node), position);
  if (described == nullptr) return graph.arg(node, position);
  const Arg* arg = described->keyword_only ? nullptr : graph.arg(node, position);
  return arg != nullptr ? arg : graph.kwarg(node, described->name);
}

bool is_random_call(const Graph& graph, NodeId node) {
  const Op& op = graph.op(node);
  if (!op.has(Effect::kRandom)) return false;
  if (op.dropout_arg < 0) return true;
  const size_t position = static_cast<size_t>(op.dropout_arg);
  const Arg* probability = call_argument(graph, node, position);
  if (probability == nullptr) {
    const SchemaArg* described = schema_argument(op, position);
    return described == nullptr || !described->has_default || !is_zero_text(described->default_value);
  }
  if (probability->is(ArgKind::kFloat)) return probability->as_double() != 0.0;
  if (probability->is(ArgKind::kInt)) return probability->as_int() != 0;
  return true;
}

bool is_writing_call(const Graph& graph, NodeId node) {
  const Op& op = graph.op(node);
  if (op.writes.empty()) return false;
  if (op.training_arg < 0) return true;
  const Arg* training = call_argument(graph, node, static_cast<size_t>(op.training_arg));
  return training == nullptr || !training->is(ArgKind::kBool) || training->as_bool();
}

}  // namespace fxopt
