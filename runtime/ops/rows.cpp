#include "runtime/ops/rows.h"

#include <algorithm>
#include <array>

#include "runtime/ops/rules.h"
#include "runtime/plan/plan.h"

namespace fxopt {
namespace {

using F = KernelFamily;
using P = Promotion;

// The kernel table, sorted by the operator's name. In the error bounds, sum, mean and max cover
// the row of a softmax or norm, or the reduced elements. n is the number of these elements.
constexpr std::array kRows = {
    KernelRow{"aten._log_softmax.default", F::kRow, "log_softmax", P::kFirst, "self", "", bindings::softmax, 8,
              "max|x| + log n", rules::softmax, "SoftMax.cpp"},
    KernelRow{"aten._log_softmax_backward_data.default", F::kRow, "log_softmax_backward", P::kFirst,
              "grad_output output", "", bindings::softmax, 8, "|g| + exp(y) sum|g|", rules::softmax_backward,
              "SoftMax.cpp"},
    KernelRow{"aten._softmax.default", F::kRow, "softmax", P::kFirst, "self", "", bindings::softmax, 8,
              "y (1 + max|x|)", rules::softmax, "SoftMax.cpp"},
    KernelRow{"aten._softmax_backward_data.default", F::kRow, "softmax_backward", P::kFirst, "grad_output output", "",
              bindings::softmax, 8, "y (|g| + sum|g y|)", rules::softmax_backward, "SoftMax.cpp"},
    KernelRow{"aten._to_copy.default", F::kCopy, "copy", P::kOption, "self", "", bindings::copy, 0.5, "|x|",
              rules::like_self, "TensorConversions.cpp"},
    KernelRow{"aten.add.Tensor", F::kPointwise, "add", P::kPromote, "self other", "alpha", bindings::pointwise, 1,
              "|a| + |alpha b|", rules::pointwise, "BinaryOps.cpp"},
    KernelRow{"aten.add_.Tensor", F::kPointwise, "add", P::kFirst, "self other", "alpha", bindings::pointwise, 1,
              "|a| + |alpha b|", rules::in_place, "BinaryOps.cpp"},
    KernelRow{"aten.addmm.default", F::kContraction, "addmm", P::kFirst, "self mat1 mat2", "", bindings::product, 8,
              "|beta c| + |alpha| sum|a b|", rules::addmm, "LinearAlgebra.cpp"},
    KernelRow{"aten.amax.default", F::kReduction, "amax", P::kFirst, "self", "", bindings::reduction, 0, "",
              rules::amax, "ReduceOps.cpp"},
    KernelRow{"aten.arange.default", F::kFill, "iota", P::kOption, "", "", bindings::iota, 0, "", rules::arange,
              "RangeFactories.cpp"},
    KernelRow{"aten.bmm.default", F::kContraction, "mm", P::kFirst, "self mat2", "", bindings::product, 8, "sum|a b|",
              rules::mm, "LinearAlgebra.cpp"},
    KernelRow{"aten.cat.default", F::kCopy, "cat", P::kPromote, "tensors", "", bindings::cat, 0, "", rules::cat,
              "TensorShape.cpp"},
    KernelRow{"aten.clone.default", F::kCopy, "copy", P::kFirst, "self", "", bindings::copy, 0, "", rules::clone,
              "TensorFactories.cpp"},
    KernelRow{"aten.copy_.default", F::kCopy, "copy", P::kFirst, "self src", "", bindings::copy_into, 0.5, "|x|",
              rules::in_place, "Copy.cpp"},
    KernelRow{"aten.embedding.default", F::kGather, "gather_rows", P::kFirst, "weight indices", "",
              bindings::gather_rows, 0, "", rules::embedding, "Embedding.cpp"},
    KernelRow{"aten.embedding_dense_backward.default", F::kScatter, "add_rows", P::kFirst, "grad_output indices", "",
              bindings::add_rows, 4, "sum|g|", rules::embedding_backward, "Embedding.cpp"},
    KernelRow{"aten.le.Tensor", F::kPointwise, "le", P::kBool, "self other", "", bindings::pointwise, 0, "",
              rules::pointwise, "BinaryOps.cpp"},
    KernelRow{"aten.mm.default", F::kContraction, "mm", P::kFirst, "self mat2", "", bindings::product, 8, "sum|a b|",
              rules::mm, "LinearAlgebra.cpp"},
    KernelRow{"aten.mul.Scalar", F::kPointwise, "mul", P::kPromote, "self other", "", bindings::pointwise, 0.5, "|a b|",
              rules::pointwise, "BinaryOps.cpp"},
    KernelRow{"aten.mul.Tensor", F::kPointwise, "mul", P::kPromote, "self other", "", bindings::pointwise, 0.5, "|a b|",
              rules::pointwise, "BinaryOps.cpp"},
    KernelRow{"aten.mul_.Tensor", F::kPointwise, "mul", P::kFirst, "self other", "", bindings::pointwise, 0.5, "|a b|",
              rules::in_place, "BinaryOps.cpp"},
    KernelRow{"aten.native_dropout.default", F::kRandom, "dropout", P::kFirst, "input", "", bindings::dropout, 1,
              "|x / (1 - p)|", rules::dropout, "Dropout.cpp, cuda/Dropout.cu"},
    KernelRow{"aten.native_dropout_backward.default", F::kPointwise, "masked_scale", P::kFirst, "grad_output mask",
              "scale", bindings::pointwise, 1, "|g scale|", rules::pointwise, "Dropout.cpp, cuda/Dropout.cu"},
    KernelRow{"aten.native_layer_norm.default", F::kRow, "layer_norm", P::kFirst, "input weight bias", "",
              bindings::layer_norm, 8, "|w| (|x| + mean|x|) rstd + |b|", rules::layer_norm, "layer_norm.cpp"},
    KernelRow{"aten.native_layer_norm_backward.default", F::kRow, "layer_norm_backward", P::kFirst,
              "grad_out input mean rstd weight", "", bindings::layer_norm_backward, 8,
              "rstd (|g w| + mean|g w| + |y| mean|g w y|)", rules::layer_norm_backward, "layer_norm.cpp"},
    KernelRow{"aten.nll_loss_backward.default", F::kLoss, "nll_loss_backward", P::kFirst,
              "grad_output self target weight total_weight", "reduction ignore_index", bindings::nll_loss_backward, 2,
              "|g w / total|", rules::nll_loss_backward, "LossNLL.cpp"},
    KernelRow{"aten.nll_loss_forward.default", F::kLoss, "nll_loss", P::kFirst, "self target weight",
              "reduction ignore_index", bindings::nll_loss, 4, "sum|w x| / total", rules::nll_loss, "LossNLL.cpp"},
    KernelRow{"aten.ones_like.default", F::kFill, "fill", P::kOption, "", "", bindings::fill, 0, "", rules::like_self,
              "TensorFactories.cpp"},
    KernelRow{"aten.pow.Tensor_Scalar", F::kPointwise, "pow", P::kPromote, "self exponent", "", bindings::pointwise, 2,
              "|x^p|", rules::pointwise, "Pow.cpp"},
    KernelRow{"aten.scalar_tensor.default", F::kFill, "fill", P::kOption, "", "", bindings::fill, 0, "", rules::factory,
              "TensorFactories.cpp"},
    KernelRow{"aten.slice_backward.default", F::kCopy, "slice_backward", P::kFirst, "grad_output", "",
              bindings::slice_backward, 0, "", rules::slice_backward, "TensorShape.cpp"},
    KernelRow{"aten.sub.Tensor", F::kPointwise, "sub", P::kPromote, "self other", "alpha", bindings::pointwise, 1,
              "|a| + |alpha b|", rules::pointwise, "BinaryOps.cpp"},
    KernelRow{"aten.sum.dim_IntList", F::kReduction, "sum", P::kAccumulate, "self", "", bindings::reduction, 4,
              "sum|x|", rules::sum, "ReduceOps.cpp"},
    KernelRow{"aten.tanh.default", F::kPointwise, "tanh", P::kReal, "self", "", bindings::pointwise, 2, "|tanh x|",
              rules::pointwise, "UnaryOps.cpp"},
    KernelRow{"aten.tanh_backward.default", F::kPointwise, "tanh_backward", P::kPromote, "grad_output output", "",
              bindings::pointwise, 4, "|g| (1 + y^2)", rules::pointwise, "BinaryOps.cpp"},
    KernelRow{"aten.where.self", F::kPointwise, "where", P::kPromote, "condition self other", "", bindings::pointwise,
              0, "", rules::pointwise, "TensorCompare.cpp"},
    KernelRow{"aten.zeros.default", F::kFill, "fill", P::kOption, "", "", bindings::fill, 0, "", rules::factory,
              "TensorFactories.cpp"},
};

static_assert(std::is_sorted(kRows.begin(), kRows.end(),
                             [](const KernelRow& a, const KernelRow& b) { return a.name < b.name; }));

}  // namespace

std::span<const KernelRow> op_rows() { return kRows; }

const KernelRow* find_op_row(std::string_view name) {
  const auto* found = std::lower_bound(kRows.begin(), kRows.end(), name,
                                       [](const KernelRow& row, std::string_view wanted) { return row.name < wanted; });
  return found != kRows.end() && found->name == name ? found : nullptr;
}

std::string_view family_name(KernelFamily family) {
  constexpr std::array<std::string_view, 10> kNames = {"pointwise", "copy",        "fill",   "reduction", "row",
                                                       "loss",      "contraction", "gather", "scatter",   "random"};
  return kNames[static_cast<size_t>(family)];
}

std::string_view promotion_name(Promotion promotion) {
  constexpr std::array<std::string_view, 6> kNames = {"first", "promote", "real", "bool", "accumulate", "option"};
  return kNames[static_cast<size_t>(promotion)];
}

}  // namespace fxopt
