#pragma once

#include "runtime/ops/rows.h"

// Rules for results, after ATen's kernels. Each gives the results of PyTorch's CPU and CUDA
// kernels, which fake tensors mostly record.
namespace fxopt::rules {

using Results = std::optional<std::vector<TensorShape>>;

// Returns the layout that ATen's TensorIterator gives the result of broadcast operands
// (TensorIterator.cpp): their common strides if all have the same dense layout, else dense in the
// order of their strides. Returns nullopt if sizes do not match.
std::optional<TensorShape> broadcast(DType dtype, const std::vector<TensorShape>& operands);

// Returns the dtype of the first result by the row's promotion, from its inputs and, for
// Promotion::kOption and kAccumulate, from `dtype`. Returns nullopt if an input is unknown.
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
// sizes of `self`, options `dtype` and `memory_format`; includes conversions
Results like_self(const StepCall& call);
Results arange(const StepCall& call);

}  // namespace fxopt::rules
