#include "ir/analysis/values.h"

#include "ir/graph/module.h"

namespace fxopt {
namespace {

bool same_dims(const Module& module, DimsId a, DimsId b) {
  if (a == b) return true;
  if (!a.is_valid() || !b.is_valid()) return false;
  const std::vector<Dim>& left = module.dims(a);
  const std::vector<Dim>& right = module.dims(b);
  if (left.size() != right.size()) return false;
  for (size_t i = 0; i < left.size(); ++i) {
    if (!same_dim(module, left[i], right[i])) return false;
  }
  return true;
}

bool same_scalar(const Graph& graph, const Value& a, const Value& b) {
  const Arg& left = graph.pool().scalar(a);
  const Arg& right = graph.pool().scalar(b);
  return left.kind() == right.kind() && !left.has_children() && left.as_bits() == right.as_bits();
}

bool same_children(const Graph& graph, const Value& a, const Value& b) {
  if (a.count != b.count) return false;
  if (a.kind == ValueKind::kDict) {
    const std::span<const StringId> left = graph.pool().keys(a);
    const std::span<const StringId> right = graph.pool().keys(b);
    for (uint32_t i = 0; i < a.count; ++i) {
      if (left[i] != right[i]) return false;
    }
  }
  for (uint32_t i = 0; i < a.count; ++i) {
    if (!same_metadata(graph, ValueId(a.first + i), ValueId(b.first + i))) return false;
  }
  return true;
}

}  // namespace

bool same_dim(const Module& module, const Dim& a, const Dim& b) {
  if (a.is_static() != b.is_static()) return false;
  return a.is_static() ? a.value == b.value : a.expr == b.expr || module.exprs.equal(a.expr, b.expr);
}

bool same_metadata(const Module& module, const Tensor& a, const Tensor& b) {
  return a.dtype == b.dtype && a.layout == b.layout && a.conjugate == b.conjugate && a.negative == b.negative &&
         a.device == b.device && a.subclass == b.subclass && a.mesh == b.mesh && a.placements == b.placements &&
         same_dims(module, a.sizes, b.sizes) && same_dims(module, a.strides, b.strides) &&
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

const Tensor* single_tensor(const Graph& graph, NodeId node) {
  const Value& value = graph.value(node);
  return value.kind == ValueKind::kTensor ? &graph.pool().tensor(value) : nullptr;
}

}  // namespace fxopt
