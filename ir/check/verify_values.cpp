// Checks values against their storages and the nodes they come from, and expressions against the
// declared symbols.

#include <algorithm>
#include <optional>

#include "ir/check/verifier.h"

namespace fxopt {
namespace {

bool is_complex(DType dtype) {
  return dtype == DType::kComplex32 || dtype == DType::kComplex64 || dtype == DType::kComplex128;
}

// The bytes from the start of the storage to the end of the last element: (offset + sum((size - 1)
// * stride) + 1) * element size, or 0 if a size is 0. `is_known` is false if a number is symbolic.
// `overflows` is true if a number exceeds 64 bits.
struct Extent {
  bool is_known = true;
  bool overflows = false;
  int64_t bytes = 0;
};
Extent extent_of(const std::vector<Dim>& sizes, const std::vector<Dim>& strides, const Dim& offset, DType dtype) {
  Extent extent;
  int64_t last = offset.value;
  extent.is_known = offset.is_static();
  for (size_t i = 0; i < sizes.size(); ++i) {
    extent.is_known = extent.is_known && sizes[i].is_static() && strides[i].is_static();
    int64_t span = 0;
    extent.overflows = extent.overflows || __builtin_sub_overflow(sizes[i].value, 1, &span) ||
                       __builtin_mul_overflow(span, strides[i].value, &span) ||
                       __builtin_add_overflow(last, span, &last);
  }
  const bool is_empty = std::any_of(sizes.begin(), sizes.end(), [](const Dim& d) { return d == Dim{0, ExprId()}; });
  if (is_empty) return Extent{true, false, 0};
  extent.overflows = extent.overflows || __builtin_add_overflow(last, 1, &last) ||
                     __builtin_mul_overflow(last, element_size(dtype), &extent.bytes);
  return extent;
}

bool has_negative(const std::vector<Dim>& dims) {
  return std::any_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.is_static() && dim.value < 0; });
}

bool all_static(const std::vector<Dim>& dims) {
  return std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.is_static(); });
}

std::string_view kind_name(ValueKind kind) {
  switch (kind) {
    case ValueKind::kNone:
      return "None";
    case ValueKind::kTensor:
      return "a tensor";
    case ValueKind::kTuple:
      return "a tuple";
    case ValueKind::kList:
      return "a list";
    case ValueKind::kDict:
      return "a dict";
    case ValueKind::kSymbolic:
      return "a symbolic number";
    case ValueKind::kScalar:
      return "a plain number or string";
    case ValueKind::kOpaque:
      return "an object";
    default:
      return "a graph";  // kinds without information are not compared
  }
}

// Whether the value is not recorded, or has a kind of a newer schema.
bool is_silent(const Value& value) { return value.kind == ValueKind::kAbsent || value.kind == ValueKind::kUnknown; }

// Numbers and symbols are compared as one kind. A size that was fixed after tracing may be recorded
// in both ways.
bool is_number(const Value& value) { return value.kind == ValueKind::kSymbolic || value.kind == ValueKind::kScalar; }

}  // namespace

template <class MakePlace>
void VerifyContext::check_storage_fit(const Tensor& tensor, const MakePlace& place) {
  if (tensor.layout != Layout::kStrided || !tensor.storage.is_valid()) return;
  const StorageRecord& storage = module.storage(tensor.storage);
  if (!storage.bytes.value.has_value()) return;
  const Extent extent = extent_of(module.dims(tensor.sizes), module.dims(tensor.strides), tensor.offset, tensor.dtype);
  if (!extent.is_known || (!extent.overflows && extent.bytes <= *storage.bytes.value)) return;
  add(ErrorCode::kVerifyValue, place(),
      "tensor needs " + (extent.overflows ? "2^63 or more" : std::to_string(extent.bytes)) + " bytes of storage " +
          std::to_string(storage.id) + ", which has only " + std::to_string(*storage.bytes.value));
}

template <class MakePlace>
void VerifyContext::check_bits(const Tensor& tensor, const MakePlace& place) {
  if (tensor.conjugate && !is_complex(tensor.dtype)) {
    add(ErrorCode::kVerifyValue, place(), "conjugate bit on a tensor of " + std::string(name_of(tensor.dtype)),
        "only complex tensors have a conjugate bit");
  }
}

template <class MakePlace>
void VerifyContext::check_dims(const Tensor& tensor, const MakePlace& place) {
  if (!tensor.sizes.is_valid()) {
    add(ErrorCode::kVerifyValue, place(), "tensor without sizes");
    return;
  }
  const std::vector<Dim>& sizes = module.dims(tensor.sizes);
  if (has_negative(sizes)) add(ErrorCode::kVerifyValue, place(), "negative size");
  for (const Dim& dim : sizes) check_expression(dim.expr, place);
  if (!tensor.strides.is_valid()) {
    if (tensor.layout == Layout::kStrided) add(ErrorCode::kVerifyValue, place(), "strided tensor without strides");
    return;
  }
  const std::vector<Dim>& strides = module.dims(tensor.strides);
  if (has_negative(strides)) add(ErrorCode::kVerifyValue, place(), "negative stride");
  for (const Dim& dim : strides) check_expression(dim.expr, place);
  if (strides.size() != sizes.size()) {
    add(ErrorCode::kVerifyValue, place(),
        std::to_string(strides.size()) + " strides for " + std::to_string(sizes.size()) + " sizes");
    return;
  }
  check_storage_fit(tensor, place);
}

template <class MakePlace>
void VerifyContext::check_tensor(const Tensor& tensor, const MakePlace& place) {
  if (tensor.dtype == DType::kUnspecified || name_of(tensor.dtype).empty()) {
    add(ErrorCode::kVerifyValue, place(),
        tensor.dtype == DType::kUnspecified
            ? "tensor without a dtype"
            : "this build does not support dtype " + std::to_string(static_cast<int>(tensor.dtype)));
  }
  if (tensor.offset.is_static() && tensor.offset.value < 0) {
    add(ErrorCode::kVerifyValue, place(), "tensor begins at element " + std::to_string(tensor.offset.value));
  }
  check_expression(tensor.offset.expr, place);
  check_bits(tensor, place);
  if (!is_blank(tensor.mesh)) check_reference(meshes, tensor.mesh, place);
  check_dims(tensor, place);
}

void VerifyContext::check_value(const Pool& pool, ValueId root, std::string_view label, const Place& base) {
  if (root.is_valid() && pool.value(root).kind == ValueKind::kTensor) {  // most values need no walk
    return check_tensor(pool.tensor(pool.value(root)), [&] {
      return Place{base.graph, base.node, std::string(label)};
    });
  }
  ValueWalk walk(pool);
  const auto place = [&] { return Place{base.graph, base.node, walk.path()}; };
  for (walk.start(label, root); walk.next();) {
    const Value& value = walk.value();
    switch (value.kind) {
      case ValueKind::kTensor:
        check_tensor(pool.tensor(value), place);
        break;
      case ValueKind::kSymbolic:
        check_expression(ExprId(value.first), place);
        break;
      case ValueKind::kGraph:
        if (!is_blank(value.name)) check_graph_reference(value.name, place);
        break;
      case ValueKind::kOpaque:
        if (!is_blank(value.mesh)) check_reference(meshes, value.mesh, place);
        if (!is_blank(value.group)) check_reference(groups, value.group, place);
        break;
      default:
        break;
    }
  }
}

// The inputs of an expression precede it in the table, so the walk terminates. All calls together
// visit each expression once.
void VerifyContext::visit_expression(ExprId expr, const Place& place) {
  pending_exprs_.assign(1, expr);
  while (!pending_exprs_.empty()) {
    const ExprId id = pending_exprs_.back();
    pending_exprs_.pop_back();
    if (visited_exprs_[id]) continue;
    visited_exprs_[id] = true;
    const Expr& node = module.exprs[id];
    pending_exprs_.insert(pending_exprs_.end(), node.inputs.rbegin(), node.inputs.rend());
    if (node.kind != ExprKind::kSymbol || symbols.contains(node.name) || undeclared_[node.name]) continue;
    undeclared_[node.name] = true;
    add(ErrorCode::kVerifyValue, place, "symbol " + quoted_name(node.name) + " is not declared",
        "add a symbol record to the module");
  }
}

// Checks the element that a getitem takes, if its operand is a tuple, list or dict with known
// elements. A getitem of anything else (a tensor, a slice of a list) is a plain call.
void GraphVerifier::check_getitem(NodeId id) {
  if (graph_.op(id).view != ViewKind::kProjection) return;
  const Arg* parent = graph_.arg(id, 0);
  const Arg* key = graph_.arg(id, 1);
  if (parent == nullptr || key == nullptr || !is_edge(*parent)) return;
  const Value& value = graph_.value(parent->as_node());
  const Place place = at(id, "args[1]");
  if (value.kind == ValueKind::kDict && key->is(ArgKind::kString)) {
    const std::optional<uint32_t> found = dict_keys_.find(graph_, parent->as_node(), key->as_string());
    if (found.has_value()) {
      check_element(id, graph_.pool().children(value)[*found]);
    } else {
      context_.add(ErrorCode::kVerifyValue, place, "no key " + context_.quoted_name(key->as_string()) + " in the dict");
    }
    return;
  }
  if ((value.kind != ValueKind::kTuple && value.kind != ValueKind::kList) || !key->is(ArgKind::kInt)) return;
  const int64_t count = value.count;
  const int64_t index = key->as_int();
  if (index < -count || index >= count) {
    context_.add(ErrorCode::kVerifyValue, place, beyond("the getitem selects element", index, count, "elements"));
    return;
  }
  check_element(id, graph_.pool().children(value)[static_cast<size_t>(index < 0 ? index + count : index)]);
}

void GraphVerifier::check_element(NodeId id, const Value& element) {
  const Value& result = graph_.value(id);
  if (is_silent(element) || is_silent(result) || (is_number(element) && is_number(result))) return;
  const Place place = at(id, "value");
  if (element.kind != result.kind) {
    context_.add(ErrorCode::kVerifyValue, place,
                 "the getitem is recorded as " + std::string(kind_name(result.kind)) +
                     ", but the selected element is " + std::string(kind_name(element.kind)));
    return;
  }
  if (element.kind != ValueKind::kTensor) return;
  const Tensor& from = graph_.pool().tensor(element);
  const Tensor& to = graph_.pool().tensor(result);
  if (from.dtype != to.dtype) {
    context_.add(ErrorCode::kVerifyValue, place,
                 "the getitem is recorded with dtype " + std::string(name_of(to.dtype)) +
                     ", but the selected element has dtype " + std::string(name_of(from.dtype)));
  }
  if (from.sizes == to.sizes || !from.sizes.is_valid() || !to.sizes.is_valid()) return;
  const std::vector<Dim>& from_sizes = module_.dims(from.sizes);
  const std::vector<Dim>& to_sizes = module_.dims(to.sizes);
  // Equal symbolic sizes may be written differently, so only their count is compared.
  if (from_sizes.size() != to_sizes.size() || (all_static(from_sizes) && all_static(to_sizes))) {
    context_.add(ErrorCode::kVerifyValue, place, "the getitem and the selected element have different recorded sizes");
  }
}

}  // namespace fxopt
