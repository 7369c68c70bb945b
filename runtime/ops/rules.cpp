#include "runtime/ops/rules.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "runtime/ops/promote.h"
#include "runtime/plan/plan.h"

namespace fxopt::rules {
namespace {

using Sizes = std::vector<int64_t>;

Results one(std::optional<TensorShape> shape) {
  if (!shape.has_value()) return std::nullopt;
  return std::vector<TensorShape>{*std::move(shape)};
}

bool is_integral(DType dtype) { return dtype == DType::kBool || promote_types(dtype, DType::kInt64) == DType::kInt64; }

bool broadcast_sizes(Sizes& into, const Sizes& other) {
  if (other.size() > into.size()) into.insert(into.begin(), other.size() - into.size(), 1);
  for (size_t i = 0; i < other.size(); ++i) {
    int64_t& size = into[into.size() - other.size() + i];
    if (size == 1) size = other[i];
    if (other[i] != 1 && other[i] != size) return false;
  }
  return true;
}

// Returns an operand's strides in the dimensions of the result. Broadcast dimensions have the
// stride 0.
Sizes broadcast_strides(const TensorShape& operand, const Sizes& sizes) {
  Sizes strides(sizes.size(), 0);
  const size_t shift = sizes.size() - operand.rank();
  for (size_t i = 0; i < operand.rank(); ++i) {
    const bool is_spread = operand.sizes[i] == 1 && sizes[shift + i] != 1;
    strides[shift + i] = is_spread ? 0 : operand.strides[i];
  }
  return strides;
}

// Compares two dimensions like TensorIteratorBase::reorder_dimensions. If the result is above 0,
// dimension `a` must be outside of dimension `b`.
int compare_dims(const std::vector<Sizes>& strides, const Sizes& sizes, size_t a, size_t b) {
  for (const Sizes& of : strides) {
    if (of[a] == 0 || of[b] == 0) continue;
    if (of[a] != of[b]) return of[a] < of[b] ? -1 : 1;
    if (sizes[a] > sizes[b]) return 1;
  }
  return 0;
}

Sizes iterator_strides(const std::vector<Sizes>& strides, const Sizes& sizes) {
  std::vector<size_t> order(sizes.size());  // innermost first
  std::iota(order.rbegin(), order.rend(), size_t{0});
  for (size_t i = 1; i < order.size(); ++i) {
    size_t at = i;
    for (size_t before = i; before-- > 0;) {
      const int comparison = compare_dims(strides, sizes, order[before], order[at]);
      if (comparison < 0) break;
      if (comparison == 0) continue;
      std::swap(order[before], order[at]);
      at = before;
    }
  }
  Sizes result(sizes.size());
  int64_t step = 1;
  for (const size_t dim : order) {
    result[dim] = step;
    step *= std::max<int64_t>(sizes[dim], 1);
  }
  return result;
}

// Returns the layout of empty_like() with preserved strides. A dense tensor keeps its strides. Any
// other tensor gets the layout that TensorIterator chooses.
TensorShape dense_like(DType dtype, const TensorShape& from) {
  if (is_dense(from)) return {dtype, from.sizes, from.strides};
  return {dtype, from.sizes, iterator_strides({from.strides}, from.sizes)};
}

// Returns a result with the sizes of `from`, and with the layout that the option `memory_format`
// selects.
Results like(const StepCall& call, const TensorShape& from, DType dtype) {
  const MemoryFormat format = call.memory_format("memory_format").value_or(MemoryFormat::kPreserve);
  if (format == MemoryFormat::kContiguous) return one(contiguous(dtype, from.sizes));
  return format == MemoryFormat::kPreserve ? one(dense_like(dtype, from)) : std::nullopt;
}

std::optional<DType> promoted(const StepCall& call, const KernelRow& row, std::vector<TensorShape>& operands) {
  ResultType type;
  bool is_known = true;
  for_each_name(row.inputs, [&](std::string_view name) {
    if (const std::optional<TensorShape> tensor = call.tensor(name)) {
      operands.push_back(*tensor);
      if (name != "condition" && name != "mask") type.add_tensor(tensor->dtype, tensor->rank() > 0);
    } else if (const std::optional<ScalarValue> number = call.number(name)) {
      operands.push_back({DType::kUnspecified, {}, {}});
      type.add_number(dtype_of_number(number->type));
    } else if (const std::vector<TensorShape> list = call.tensors(name); !list.empty()) {
      for (const TensorShape& part : list) type.add_tensor(part.dtype, part.rank() > 0);
      operands.insert(operands.end(), list.begin(), list.end());
    } else if (call.is_given(name) || name == "self" || name == "other") {
      is_known = false;  // unknown, or None for a required operand
    }
  });
  if (!is_known || operands.empty()) return std::nullopt;
  if (row.promotion == Promotion::kFirst) return operands.front().dtype;
  if (row.promotion == Promotion::kBool) return DType::kBool;
  const std::optional<DType> dtype = type.get();
  const bool is_real = row.promotion == Promotion::kReal && dtype.has_value() && is_integral(*dtype);
  return is_real ? DType::kFloat32 : dtype;
}

std::optional<int64_t> wrapped(int64_t dim, size_t rank) {
  const int64_t count = std::max<int64_t>(static_cast<int64_t>(rank), 1);
  if (dim < -count || dim >= count) return std::nullopt;
  return dim < 0 ? dim + count : dim;
}

Results product(const StepCall& call, std::string_view left, std::string_view right) {
  const std::optional<TensorShape> a = call.tensor(left), b = call.tensor(right);
  if (!a.has_value() || !b.has_value() || a->rank() != b->rank() || a->rank() < 2) return std::nullopt;
  const size_t last = a->rank() - 1;
  if (a->sizes[last] != b->sizes[last - 1] || a->dtype != b->dtype) return std::nullopt;
  Sizes sizes = a->sizes;
  sizes[last] = b->sizes[last];
  return one(contiguous(a->dtype, std::move(sizes)));
}

// Returns the result of a reduction over `dim`, like resize_reduction() in ReduceOpsUtils.h. If
// `dim` is None or empty, all dimensions are reduced.
Results reduction(const StepCall& call, const TensorShape& from, DType dtype) {
  const std::optional<Sizes> dims = call.is_given("dim") ? call.integers("dim") : Sizes();
  if (!dims.has_value()) return std::nullopt;
  std::vector<bool> is_reduced(from.rank(), dims->empty());
  for (const int64_t dim : *dims) {
    const std::optional<int64_t> place = wrapped(dim, from.rank());
    if (!place.has_value()) return std::nullopt;
    if (from.rank() > 0) is_reduced[static_cast<size_t>(*place)] = true;
  }
  const bool keeps = call.integer("keepdim").value_or(0) != 0;
  Sizes sizes;
  for (size_t i = 0; i < from.rank(); ++i) {
    if (!is_reduced[i]) sizes.push_back(from.sizes[i]);
    if (is_reduced[i] && keeps) sizes.push_back(1);
  }
  return one(contiguous(dtype, std::move(sizes)));
}

}  // namespace

std::optional<TensorShape> broadcast(DType dtype, const std::vector<TensorShape>& operands) {
  Sizes sizes;
  for (const TensorShape& operand : operands) {
    if (!broadcast_sizes(sizes, operand.sizes)) return std::nullopt;
  }
  const auto is_alike = [&](const TensorShape& operand) { return operand.sizes == sizes; };
  if (std::all_of(operands.begin(), operands.end(), is_alike)) {
    if (std::all_of(operands.begin(), operands.end(), is_contiguous)) return contiguous(dtype, sizes);
    const auto lies_alike = [&](const TensorShape& operand) {
      return is_dense(operand) && operand.strides == operands.front().strides;
    };
    if (std::all_of(operands.begin(), operands.end(), lies_alike))
      return TensorShape{dtype, sizes, operands.front().strides};
  }
  std::vector<Sizes> strides;
  for (const TensorShape& operand : operands) strides.push_back(broadcast_strides(operand, sizes));
  Sizes result = iterator_strides(strides, sizes);
  return TensorShape{dtype, std::move(sizes), std::move(result)};
}

std::optional<DType> promoted_dtype(const StepCall& call, const KernelRow& row) {
  const bool is_optional = row.promotion == Promotion::kOption || row.promotion == Promotion::kAccumulate;
  const std::optional<DType> given = is_optional ? call.dtype("dtype") : std::nullopt;
  if (given.has_value()) return given;
  std::vector<TensorShape> operands;
  const std::optional<DType> dtype = promoted(call, row, operands);
  const bool is_summed = row.promotion == Promotion::kAccumulate && dtype.has_value() && is_integral(*dtype);
  return is_summed ? DType::kInt64 : dtype;
}

Results pointwise(const StepCall& call) {
  const KernelRow* row = find_op_row(op_name(call.plan(), call.step()));
  std::vector<TensorShape> operands;
  const std::optional<DType> dtype = row == nullptr ? std::nullopt : promoted(call, *row, operands);
  return dtype.has_value() ? one(broadcast(*dtype, operands)) : std::nullopt;
}

Results in_place(const StepCall& call) { return one(call.tensor("self")); }

Results clone(const StepCall& call) {
  const std::optional<TensorShape> from = call.tensor("self");
  return from.has_value() ? like(call, *from, from->dtype) : std::nullopt;
}

Results cat(const StepCall& call) {
  const std::vector<TensorShape> parts = call.tensors("tensors");
  const std::optional<int64_t> given = call.integer("dim");
  if (parts.empty() || !given.has_value()) return std::nullopt;
  ResultType type;
  const TensorShape* like = nullptr;
  Sizes sizes;
  std::optional<int64_t> dim;
  for (const TensorShape& part : parts) {
    type.add_tensor(part.dtype, part.rank() > 0);
    // torch.cat ignores 1-D tensors without elements.
    if (part.rank() == 1 && part.sizes[0] == 0) continue;
    if (like == nullptr) {
      like = &part;
      sizes = part.sizes;
      dim = wrapped(*given, part.rank());
      if (!dim.has_value()) return std::nullopt;
      continue;
    }
    if (part.rank() != sizes.size()) return std::nullopt;
    sizes[static_cast<size_t>(*dim)] += part.sizes[static_cast<size_t>(*dim)];
  }
  const std::optional<DType> dtype = type.get();
  if (!dtype.has_value()) return std::nullopt;
  if (like == nullptr) return one(contiguous(*dtype, {0}));
  // The result may have the layout channels_last, which this rule does not compute.
  if (!std::ranges::all_of(parts, is_contiguous) && sizes.size() > 3) return std::nullopt;
  return one(contiguous(*dtype, std::move(sizes)));
}

Results slice_backward(const StepCall& call) {
  const std::optional<TensorShape> gradient = call.tensor("grad_output");
  const std::optional<Sizes> sizes = call.integers("input_sizes");
  if (!gradient.has_value() || !sizes.has_value()) return std::nullopt;
  return one(contiguous(gradient->dtype, *sizes));
}

Results mm(const StepCall& call) { return product(call, "self", "mat2"); }
Results addmm(const StepCall& call) { return product(call, "mat1", "mat2"); }

Results sum(const StepCall& call) {
  const std::optional<TensorShape> from = call.tensor("self");
  if (!from.has_value()) return std::nullopt;
  return reduction(call, *from, call.dtype("dtype").value_or(is_integral(from->dtype) ? DType::kInt64 : from->dtype));
}

Results amax(const StepCall& call) {
  const std::optional<TensorShape> from = call.tensor("self");
  return from.has_value() ? reduction(call, *from, from->dtype) : std::nullopt;
}

// The result is contiguous, because the kernel first makes its argument contiguous.
Results softmax(const StepCall& call) {
  const std::optional<TensorShape> from = call.tensor("self");
  if (!from.has_value()) return std::nullopt;
  const bool is_widened = call.integer("half_to_float").value_or(0) != 0;
  return one(contiguous(is_widened ? DType::kFloat32 : from->dtype, from->sizes));
}

Results softmax_backward(const StepCall& call) {
  const std::optional<TensorShape> gradient = call.tensor("grad_output");
  if (!gradient.has_value()) return std::nullopt;
  return one(contiguous(call.dtype("input_dtype").value_or(gradient->dtype), gradient->sizes));
}

Results layer_norm(const StepCall& call) {
  const std::optional<TensorShape> from = call.tensor("input");
  const std::optional<Sizes> normalized = call.integers("normalized_shape");
  if (!from.has_value() || !normalized.has_value() || normalized->size() > from->rank()) return std::nullopt;
  Sizes statistics = from->sizes;
  std::fill(statistics.end() - static_cast<ptrdiff_t>(normalized->size()), statistics.end(), 1);
  const bool is_half = from->dtype == DType::kBfloat16 || from->dtype == DType::kFloat16;
  const TensorShape row = contiguous(is_half ? DType::kFloat32 : from->dtype, statistics);
  return std::vector<TensorShape>{contiguous(from->dtype, from->sizes), row, row};
}

Results layer_norm_backward(const StepCall& call) {
  const std::optional<TensorShape> from = call.tensor("input"), weight = call.tensor("weight"),
                                   bias = call.tensor("bias");
  if (!from.has_value()) return std::nullopt;
  std::vector<TensorShape> results{contiguous(from->dtype, from->sizes)};
  for (const std::optional<TensorShape>& parameter : {weight, bias}) {
    results.push_back(parameter.has_value() ? contiguous(parameter->dtype, parameter->sizes) : TensorShape{});
  }
  return results;
}

Results dropout(const StepCall& call) {
  const std::optional<TensorShape> from = call.tensor("input");
  if (!from.has_value()) return std::nullopt;
  return std::vector<TensorShape>{dense_like(from->dtype, *from), dense_like(DType::kBool, *from)};
}

Results nll_loss(const StepCall& call) {
  const std::optional<TensorShape> from = call.tensor("self"), target = call.tensor("target");
  const std::optional<int64_t> reduction = call.integer("reduction");
  if (!from.has_value() || !target.has_value() || !reduction.has_value()) return std::nullopt;
  const bool is_by_row = *reduction == 0 && from->rank() == 2;
  return std::vector<TensorShape>{contiguous(from->dtype, is_by_row ? Sizes{from->sizes[0]} : Sizes{}),
                                  contiguous(from->dtype, {})};
}

Results nll_loss_backward(const StepCall& call) {
  const std::optional<TensorShape> from = call.tensor("self");
  return from.has_value() ? one(contiguous(from->dtype, from->sizes)) : std::nullopt;
}

Results embedding(const StepCall& call) {
  const std::optional<TensorShape> weight = call.tensor("weight"), indices = call.tensor("indices");
  if (!weight.has_value() || !indices.has_value() || weight->rank() != 2) return std::nullopt;
  Sizes sizes = indices->sizes;
  sizes.push_back(weight->sizes[1]);
  return one(contiguous(weight->dtype, std::move(sizes)));
}

Results embedding_backward(const StepCall& call) {
  const std::optional<TensorShape> gradient = call.tensor("grad_output");
  const std::optional<int64_t> rows = call.integer("num_weights");
  if (!gradient.has_value() || !rows.has_value() || gradient->rank() == 0) return std::nullopt;
  return one(contiguous(gradient->dtype, {*rows, gradient->sizes.back()}));
}

Results factory(const StepCall& call) {
  const bool is_number = call.is_given("s");
  const std::optional<Sizes> sizes = is_number ? Sizes() : call.integers("size");
  if (!sizes.has_value()) return std::nullopt;
  return one(contiguous(call.dtype("dtype").value_or(DType::kFloat32), *sizes));
}

Results like_self(const StepCall& call) {
  const std::optional<TensorShape> from = call.tensor("self");
  if (!from.has_value()) return std::nullopt;
  return like(call, *from, call.dtype("dtype").value_or(from->dtype));
}

Results arange(const StepCall& call) {
  const std::optional<ScalarValue> end = call.number("end");
  if (!end.has_value() || end->type == FX_SCALAR_FLOAT) return std::nullopt;
  return one(contiguous(call.dtype("dtype").value_or(DType::kInt64), {end->integer}));
}

}  // namespace fxopt::rules
