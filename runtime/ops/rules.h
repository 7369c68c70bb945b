#pragma once

#include "runtime/ops/rows.h"

// Rules of results, after ATen's kernels. Each gives what PyTorch's CPU and CUDA kernels make, which fake tensors mostly record.
namespace fxopt::rules {

using Results = std::optional<std::vector<TensorShape>>;

// The layout that ATen's TensorIterator gives a result of operands that are broadcast (TensorIterator.cpp): their common
// strides where all are dense alike, else dense in the order of their strides. Nothing where sizes do not fit.
std::optional<TensorShape> broadcast(DType dtype, const std::vector<TensorShape>& operands);

// The dtype of the first result by the row's promotion, from its inputs and, for Promotion::kOption and kAccumulate, from
// `dtype`. Nothing where an input is not known.
std::optional<DType> promoted_dtype(const StepCall& call, const KernelRow& row);

Results pointwise(const StepCall& call);  // operands and promotion by the row
Results in_place(const StepCall& call);   // `self`, whatever the operands are
Results clone(const StepCall& call);
Results cat(const StepCall& call);
Results slice_backward(const StepCall& call);
Results mm(const StepCall& call);
Results addmm(const StepCall& call);
Results bmm(const StepCall& call);
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
Results like_self(const StepCall& call);  // sizes of `self`; `dtype` and `memory_format` by option: also conversions
Results arange(const StepCall& call);

}  // namespace fxopt::rules
