#pragma once

#include "runtime/ops/rows.h"

// Rules that return the dtype, sizes and strides of results, as PyTorch's CPU and CUDA kernels
// choose them. Fake tensors record the same values in most cases.
namespace fxopt::rules {

using Results = std::optional<std::vector<TensorShape>>;

// Returns the layout that ATen's TensorIterator chooses for the result of broadcast operands
// (TensorIterator.cpp). If all operands have the same dense layout, the result has this layout.
// Otherwise the result is dense, and its dimensions are in the order of the operands' strides.
// Returns nullopt if sizes do not match.
std::optional<TensorShape> broadcast(DType dtype, const std::vector<TensorShape>& operands);

// Returns the dtype of the first result according to KernelRow::promotion. The dtype depends on the
// inputs. For Promotion::kOption and kAccumulate, it also depends on the argument `dtype`. Returns
// nullopt if an input is unknown.
std::optional<DType> promoted_dtype(const StepCall& call, const KernelRow& row);

Results pointwise(const StepCall& call);  // The operator's KernelRow says which arguments are operands, and how
                                          // dtypes are promoted
Results in_place(const StepCall& call);   // always the shape of `self`
Results clone(const StepCall& call);
Results cat(const StepCall& call);
Results slice_backward(const StepCall& call);
Results mm(const StepCall& call);
Results addmm(const StepCall& call);
Results sum(const StepCall& call);
Results amax(const StepCall& call);
Results softmax(const StepCall& call);
Results softmax_backward(const StepCall& call);
Results layer_norm(const StepCall& call);
Results layer_norm_backward(const StepCall& call);
Results dropout(const StepCall& call);
Results nll_loss(const StepCall& call);
Results nll_loss_backward(const StepCall& call);
Results embedding(const StepCall& call);
Results embedding_backward(const StepCall& call);
Results factory(const StepCall& call);
// The result has the sizes of `self` and depends on the options `dtype` and `memory_format`. The
// rule is also used for conversions.
Results like_self(const StepCall& call);
Results arange(const StepCall& call);

}  // namespace fxopt::rules
