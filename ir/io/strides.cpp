#include "ir/io/strides.h"

#include <algorithm>

namespace fxopt {
namespace {

// Whether the operand `id` of a product is equal to `dim`.
bool is_operand(const ExprTable& exprs, ExprId id, const Dim& dim) {
  if (!dim.is_static()) return id == dim.expr;
  return exprs[id].kind == ExprKind::kInt && exprs[id].value == dim.value;
}

// Whether `product` is the stride that contiguous_strides() computes from `size` and `stride`, the
// size and the stride of the next inner dimension.
bool is_product(const ExprTable& exprs, const Dim& product, const Dim& size, const Dim& stride) {
  int64_t number = 0;
  if (size.is_static() && stride.is_static() &&
      !__builtin_mul_overflow(stride.value, std::max<int64_t>(size.value, 1), &number)) {
    return product == Dim{number, ExprId()};
  }
  if (size.is_static() && size.value <= 1) return product == stride;
  if (stride.is_static() && stride.value == 1) return product == Dim{0, size.expr};
  if (product.is_static()) return false;
  const Expr& expr = exprs[product.expr];
  return expr.kind == ExprKind::kMul && is_operand(exprs, expr.inputs[0], stride) &&
         is_operand(exprs, expr.inputs[1], size);
}

}  // namespace

bool are_strides_implied(const Module& module, const Tensor& tensor) {
  if (tensor.layout != Layout::kStrided || !tensor.sizes.is_valid() || !tensor.strides.is_valid()) return false;
  const std::vector<Dim>& sizes = module.dims(tensor.sizes);
  const std::vector<Dim>& strides = module.dims(tensor.strides);
  if (sizes.size() != strides.size()) return false;
  if (!sizes.empty() && strides.back() != Dim{1, ExprId()}) return false;
  for (size_t i = sizes.size(); i-- > 1;) {
    if (!is_product(module.exprs, strides[i - 1], sizes[i], strides[i])) return false;
  }
  return true;
}

}  // namespace fxopt
