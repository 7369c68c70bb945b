#include "cli/print/nodes.h"

#include "ir/graph/module.h"
#include "ir/step/phases.h"

namespace fxopt {
namespace {

constexpr size_t kMaxChildren = 4;

std::string tensor_text(const Module& module, const Tensor& tensor) {
  std::string text = std::string(name_of(tensor.dtype)) + "[";
  bool is_first = true;
  for (const Dim& dim : module.dims(tensor.sizes)) {
    if (!is_first) text += ", ";
    is_first = false;
    text += dim.is_static() ? std::to_string(dim.value) : module.exprs.to_string(dim.expr);
  }
  return text + "]";
}

// Describes one level of a tuple. Elements that are not tensors become "_".
std::string children_text(const Graph& graph, const Value& value) {
  std::string text = "(";
  size_t shown = 0;
  for (const Value& child : graph.pool().children(value)) {
    if (shown > 0) text += ", ";
    if (shown++ == kMaxChildren) return text + "... " + std::to_string(value.count) + " in total)";
    text += child.kind == ValueKind::kTensor ? tensor_text(graph.module(), graph.pool().tensor(child)) : "_";
  }
  return text + ")";
}

}  // namespace

std::string_view target_text(const Graph& graph, NodeId node) {
  const TargetId target = graph[node].target;
  return target.is_valid() ? graph.module().text(graph.module().target(target).name) : std::string_view();
}

std::string value_text(const Graph& graph, const Value& value) {
  switch (value.kind) {
    case ValueKind::kTensor:
      return tensor_text(graph.module(), graph.pool().tensor(value));
    case ValueKind::kTuple:
    case ValueKind::kList:
    case ValueKind::kDict:
      return children_text(graph, value);
    case ValueKind::kNone:
      return "None";
    case ValueKind::kSymbolic:
      return "symbolic " + std::string(name_of(value.symbol_type));
    case ValueKind::kScalar:
      return "scalar";
    case ValueKind::kOpaque:
      return "object " + std::string(graph.module().text(value.name));
    case ValueKind::kGraph:
      return "graph";
    case ValueKind::kAbsent:
    case ValueKind::kUnknown:
      break;
  }
  return "unknown";
}

static bool is_in_torch(std::string_view file) { return file.find("-packages/torch/") != std::string_view::npos; }

// Returns the innermost frame outside PyTorch of a Python stack trace: "model.py:12". Returns an
// empty text if every frame is in PyTorch.
static std::string user_frame(std::string_view stack) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ";
  for (size_t at = stack.rfind(kFile); at != std::string_view::npos;
       at = at == 0 ? at - 1 : stack.rfind(kFile, at - 1)) {
    const size_t begin = at + kFile.size(), end = stack.find(kLine, begin);
    if (end == std::string_view::npos || is_in_torch(stack.substr(begin, end - begin))) continue;
    const size_t number = end + kLine.size();
    const size_t last = std::min(stack.find_first_not_of("0123456789", number), stack.size());
    return std::string(stack.substr(begin, end - begin)) + ":" + std::string(stack.substr(number, last - number));
  }
  return {};
}

bool has_own_frame(const Graph& graph, NodeId node) {
  const SourceId source = graph[node].source;
  return source.is_valid() && !is_in_torch(graph.module().text(graph.module().source(source).file));
}

std::string source_text(const Graph& graph, NodeId node) {
  const Node& record = graph[node];
  if (!record.source.is_valid()) return {};
  const Source& source = graph.module().source(record.source);
  if (const Arg* stack = has_own_frame(graph, node) ? nullptr : graph.meta_entry(node, "stack_trace");
      stack != nullptr && stack->is(ArgKind::kString)) {
    if (std::string frame = user_frame(graph.module().text(stack->as_string())); !frame.empty()) return frame;
  }
  std::string text(graph.module().text(source.file));
  if (source.line > 0) text += ":" + std::to_string(source.line);
  return text;
}

IdMap<NodeId, Phase> visible_phases(const Graph& graph, Validity validity) {
  if (validity == Validity::kValid) return resolve_phases(graph).phase;
  IdMap<NodeId, Phase> phases(graph.num_ids());
  for (const NodeId node : graph.nodes()) phases[node] = graph[node].phase;
  return phases;
}

}  // namespace fxopt
