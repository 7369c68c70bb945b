#include "ir/values/values.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "ir/graph/module.h"
#include "ir/values/sym_int.h"

namespace fxopt {
namespace {

bool same_scalar(const Graph& graph, const Value& a, const Value& b) {
  const Arg& left = graph.pool().scalar(a);
  const Arg& right = graph.pool().scalar(b);
  return left.kind() == right.kind() && !left.has_children() && left.as_bits() == right.as_bits();
}

bool same_children(const Graph& graph, const Value& a, const Value& b) {
  if (a.count != b.count) return false;
  if (a.kind == ValueKind::kDict && !std::ranges::equal(graph.pool().keys(a), graph.pool().keys(b))) return false;
  for (uint32_t i = 0; i < a.count; ++i) {
    if (!same_metadata(graph, ValueId(a.first + i), ValueId(b.first + i))) return false;
  }
  return true;
}

// Returns the number of elements. Returns nothing for symbolic sizes and for products beyond 64
// bits.
std::optional<int64_t> count_elements(const std::vector<Dim>& sizes) {
  int64_t count = 1;
  for (const Dim& size : sizes) {
    if (!size.is_static() || size.value < 0 || __builtin_mul_overflow(count, size.value, &count)) return std::nullopt;
  }
  return count;
}

bool are_static(const std::vector<Dim>& dims) {
  return std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.is_static(); });
}

// True if a tensor with `sizes` and `strides` visits the same memory in the same order as a tensor
// with `from_sizes` and `from_strides`. All numbers are static. Both tensors have the same number
// of elements, which is not 0. Adjacent dimensions without a gap form a block. The dimensions of a
// block may be split and merged, but no dimension may span two blocks.
bool walk_alike(const std::vector<Dim>& from_sizes, const std::vector<Dim>& from_strides, const std::vector<Dim>& sizes,
                const std::vector<Dim>& strides) {
  size_t d = sizes.size();
  size_t f = from_sizes.size();
  while (f > 0) {
    --f;
    if (from_sizes[f].value == 1) continue;
    const int64_t step = from_strides[f].value;
    int64_t block = from_sizes[f].value;  // elements of the block, `step` apart
    for (; f > 0; --f) {
      const Dim& size = from_sizes[f - 1];
      int64_t dense = 0;
      if (__builtin_mul_overflow(block, step, &dense)) return false;
      if (size.value != 1 && from_strides[f - 1].value != dense) break;
      block *= size.value;
    }
    int64_t done = 1;
    for (; done < block && d > 0; --d) {
      if (sizes[d - 1].value == 1) continue;
      int64_t expected = 0;
      if (__builtin_mul_overflow(done, step, &expected) || strides[d - 1].value != expected) return false;
      done *= sizes[d - 1].value;
    }
    if (done != block) return false;
  }
  return std::all_of(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(d),
                     [](const Dim& size) { return size.value == 1; });
}

void collect_leaves(const Graph& graph, const Arg& arg, std::vector<Arg>& out) {
  if (arg.is(ArgKind::kList) || arg.is(ArgKind::kTuple) || arg.is(ArgKind::kDict)) {
    const std::span<const Arg> children = graph.pool().children(arg);
    const size_t step = arg.is(ArgKind::kDict) ? 2 : 1;
    for (size_t i = step - 1; i < children.size(); i += step) collect_leaves(graph, children[i], out);
    return;
  }
  out.push_back(arg);
}

}  // namespace

bool same_sizes(const Module& module, DimsId a, DimsId b) {
  if (a == b) return true;
  if (!a.is_valid() || !b.is_valid()) return false;
  const auto same = [&module](const Dim& left, const Dim& right) { return same_dim(module, left, right); };
  return std::ranges::equal(module.dims(a), module.dims(b), same);
}

bool is_floating(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kBfloat16;
}

bool has_one_element(const Graph& graph, NodeId node) {
  const Tensor* tensor = single_tensor(graph, node);
  if (tensor == nullptr || !tensor->sizes.is_valid()) return false;
  const std::vector<Dim>& sizes = graph.module().dims(tensor->sizes);
  return std::all_of(sizes.begin(), sizes.end(), [](const Dim& d) { return d.is_static() && d.value == 1; });
}

std::vector<NodeId> placeholders_of(const Graph& graph) {
  std::vector<NodeId> placeholders;
  for (const NodeId node : graph.nodes()) {
    if (graph[node].kind == NodeKind::kPlaceholder) placeholders.push_back(node);
  }
  return placeholders;
}

std::vector<NodeId> output_leaves(const Graph& graph) {
  std::vector<NodeId> leaves;
  const NodeId output = graph.output();
  if (!output.is_valid()) return leaves;
  for (const Arg& leaf : leaves_of(graph, graph[output].args)) {
    leaves.push_back(leaf.is(ArgKind::kNode) ? leaf.as_node() : NodeId());
  }
  return leaves;
}

std::vector<Arg> leaves_of(const Graph& graph, ArgRange range) {
  std::vector<Arg> leaves;
  for (const Arg& arg : graph.pool().args(range)) collect_leaves(graph, arg, leaves);
  return leaves;
}

ViewAnswer compare_as_view(const Module& module, const Tensor& from, const Tensor& to) {
  if (from.dtype == DType::kUnspecified || to.dtype == DType::kUnspecified || from.pinned != to.pinned) {
    return ViewAnswer::kUnknown;  // not every tracer records pinning on results
  }
  if (from.dtype != to.dtype || from.layout != to.layout || from.conjugate != to.conjugate ||
      from.negative != to.negative) {
    return ViewAnswer::kCopy;
  }
  if (from.device != to.device) {
    return from.device.is_valid() && to.device.is_valid() ? ViewAnswer::kCopy : ViewAnswer::kUnknown;
  }
  if (!from.sizes.is_valid() || !to.sizes.is_valid() || !from.strides.is_valid() || !to.strides.is_valid()) {
    return ViewAnswer::kUnknown;
  }
  if (from.offset.is_static() && to.offset.is_static() && from.offset.value != to.offset.value) {
    return ViewAnswer::kCopy;
  }
  const bool same_offset = same_dim(module, from.offset, to.offset);
  if (same_offset && same_sizes(module, from.sizes, to.sizes) && same_sizes(module, from.strides, to.strides)) {
    return ViewAnswer::kView;
  }
  const std::vector<Dim>& from_sizes = module.dims(from.sizes);
  const std::vector<Dim>& sizes = module.dims(to.sizes);
  const std::vector<Dim>& from_strides = module.dims(from.strides);
  const std::vector<Dim>& strides = module.dims(to.strides);
  const std::optional<int64_t> count = count_elements(from_sizes);
  const std::optional<int64_t> made = count_elements(sizes);
  if (!count || !made || !same_offset || !are_static(from_strides) || !are_static(strides)) return ViewAnswer::kUnknown;
  if (*count != *made) return ViewAnswer::kCopy;
  if (*count == 0) return ViewAnswer::kUnknown;
  return walk_alike(from_sizes, from_strides, sizes, strides) ? ViewAnswer::kView : ViewAnswer::kCopy;
}

bool same_dim(const Module& module, const Dim& a, const Dim& b) {
  if (a.is_static() != b.is_static()) return false;
  return a.is_static() ? a.value == b.value
                       : a.expr == b.expr || sym_int_of(module, a.expr) == sym_int_of(module, b.expr);
}

bool same_metadata(const Module& module, const Tensor& a, const Tensor& b) {
  return a.dtype == b.dtype && a.layout == b.layout && a.conjugate == b.conjugate && a.negative == b.negative &&
         a.device == b.device && a.subclass == b.subclass && a.mesh == b.mesh && a.placements == b.placements &&
         same_sizes(module, a.sizes, b.sizes) && same_sizes(module, a.strides, b.strides) &&
         same_dim(module, a.offset, b.offset);
}

bool same_metadata(const Graph& graph, ValueId a, ValueId b) {
  if (a == b) return true;
  const Value left = a.is_valid() ? graph.pool().value(a) : Value();
  const Value right = b.is_valid() ? graph.pool().value(b) : Value();
  if (left.kind != right.kind) return false;
  switch (left.kind) {
    case ValueKind::kAbsent:
    case ValueKind::kNone:
      return true;
    case ValueKind::kTensor:
      return same_metadata(graph.module(), graph.pool().tensor(left), graph.pool().tensor(right));
    case ValueKind::kTuple:
    case ValueKind::kList:
    case ValueKind::kDict:
      return same_children(graph, left, right);
    case ValueKind::kSymbolic:
      return left.symbol_type == right.symbol_type && left.first == right.first;
    case ValueKind::kScalar:
      return same_scalar(graph, left, right);
    case ValueKind::kOpaque:
      return left.name == right.name && left.mesh == right.mesh && left.group == right.group && left.text == right.text;
    case ValueKind::kGraph:
      return left.name == right.name;
    case ValueKind::kUnknown:
      return false;
  }
  return false;
}

std::optional<uint32_t> DictKeys::find(const Graph& graph, NodeId node, StringId key) {
  const auto place = [node](StringId name) { return uint64_t{node.index()} << 32 | name.index(); };
  if (!is_noted_.get(node)) {
    is_noted_[node] = true;
    const std::span<const StringId> keys = graph.pool().keys(graph.value(node));
    for (uint32_t i = 0; i < keys.size(); ++i) elements_.emplace(place(keys[i]), i);
  }
  const auto found = elements_.find(place(key));
  return found == elements_.end() ? std::nullopt : std::optional<uint32_t>(found->second);
}

std::string_view module_of(const Graph& graph, NodeId node) {
  const std::string_view path = graph.module().text(graph[node].module_path);
  const NodeExtra* extra = graph.extra(node);
  if (!path.empty() || extra == nullptr || !extra->input.has_value()) return path;
  const std::string_view name = graph.module().text(extra->input->fqn);
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

bool name_same_thing(const Attribute& a, const Attribute& b) {
  return (a.constant.is_valid() || a.graph.is_valid()) && a.constant == b.constant && a.graph == b.graph &&
         !a.opaque.has_value() && !b.opaque.has_value();
}

const InputSpec* recorded_input(const Graph& graph, NodeId node) {
  const NodeExtra* extra = graph[node].kind == NodeKind::kPlaceholder ? graph.extra(node) : nullptr;
  return extra != nullptr && extra->input.has_value() ? &*extra->input : nullptr;
}

InputRole recorded_role(const Graph& graph, NodeId node) {
  const InputSpec* spec = recorded_input(graph, node);
  return spec == nullptr ? InputRole::kUnspecified : spec->role;
}

bool is_tangent(const Graph& graph, NodeId node) { return recorded_role(graph, node) == InputRole::kTangent; }

NodeId first_argument(const Graph& graph, NodeId node) {
  const Arg* arg = graph.arg(node, 0);
  return arg != nullptr && arg->is(ArgKind::kNode) ? arg->as_node() : NodeId();
}

const Tensor* single_tensor(const Graph& graph, NodeId node) {
  const Value& value = graph.value(node);
  return value.kind == ValueKind::kTensor ? &graph.pool().tensor(value) : nullptr;
}

}  // namespace fxopt
