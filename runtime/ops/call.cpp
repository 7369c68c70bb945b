#include "runtime/ops/call.h"

#include <algorithm>
#include <numeric>

#include "ir/ops/op.h"
#include "runtime/plan/plan.h"

namespace fxopt {
namespace {

// Returns the index of an argument among all arguments of the schema, including keyword-only
// arguments. Returns nullopt if the schema has no argument with this name.
std::optional<size_t> place_of(const Op* op, std::string_view name) {
  if (op == nullptr || !op->schema.has_value()) return std::nullopt;
  const std::vector<SchemaArg>& args = op->schema->args;
  const auto found = std::find_if(args.begin(), args.end(), [&](const SchemaArg& arg) { return arg.name == name; });
  return found == args.end() ? std::nullopt : std::optional(static_cast<size_t>(found - args.begin()));
}

}  // namespace

int64_t TensorShape::elements() const {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, [](int64_t a, int64_t b) { return a * b; });
}

std::vector<int64_t> contiguous_strides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

TensorShape contiguous(DType dtype, std::vector<int64_t> sizes) {
  std::vector<int64_t> strides = contiguous_strides(sizes);
  return {dtype, std::move(sizes), std::move(strides)};
}

bool is_contiguous(const TensorShape& shape) {
  int64_t step = 1;
  for (size_t i = shape.rank(); i-- > 0;) {
    if (shape.sizes[i] == 0) return true;
    if (shape.sizes[i] != 1 && shape.strides[i] != step) return false;
    step *= shape.sizes[i];
  }
  return true;
}

bool is_dense(const TensorShape& shape) {
  std::vector<size_t> order;
  for (size_t i = 0; i < shape.rank(); ++i) {
    if (shape.sizes[i] == 0) return true;
    if (shape.sizes[i] != 1) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return shape.strides[a] < shape.strides[b]; });
  int64_t step = 1;
  for (const size_t i : order) {
    if (shape.strides[i] != step) return false;
    step *= shape.sizes[i];
  }
  return true;
}

bool same_layout(const TensorShape& a, const TensorShape& b) {
  if (a.dtype != b.dtype || a.sizes != b.sizes) return false;
  if (a.elements() == 0) return true;
  for (size_t i = 0; i < a.rank(); ++i) {
    if (a.sizes[i] != 1 && a.strides[i] != b.strides[i]) return false;
  }
  return true;
}

DType dtype_of_number(FxScalarType type) {
  if (type == FX_SCALAR_BOOL) return DType::kBool;
  return type == FX_SCALAR_FLOAT ? DType::kFloat64 : DType::kInt64;
}

FxWord StepCall::word(std::string_view name) const {
  const std::optional<size_t> place = place_of(op_, name);
  if (place.has_value() && *place < step_.num_args) return plan_.words[step_.args + *place];
  for (uint32_t i = 0; i < step_.num_keywords; ++i) {
    if (text_at(plan_, index_of(plan_.words[step_.keywords + 2 * i])) == name)
      return plan_.words[step_.keywords + 2 * i + 1];
  }
  return kNoWord;
}

bool StepCall::is_given(std::string_view name) const { return word(name) != kNoWord; }

const SchemaDefault* StepCall::default_of(std::string_view name) const {
  const std::optional<size_t> place = place_of(op_, name);
  return place.has_value() ? &op_->schema->args[*place].default_value : nullptr;
}

std::optional<TensorShape> StepCall::shape_of(FxWord word) const {
  if (kind_of(word) != FX_WORD_TENSOR) return std::nullopt;
  const FxTensor& tensor = plan_.tensors[index_of(word)];
  if ((tensor.flags & FX_TENSOR_UNKNOWN) != 0) return std::nullopt;
  TensorShape shape{static_cast<DType>(tensor.dtype), {}, {}};
  for (uint32_t i = 0; i < 2u * tensor.rank; ++i) {
    const std::optional<int64_t> number = values_.integer(plan_.words[tensor.dims + i]);
    if (!number.has_value()) return std::nullopt;
    (i < tensor.rank ? shape.sizes : shape.strides).push_back(*number);
  }
  return shape;
}

std::optional<TensorShape> StepCall::tensor(std::string_view name) const { return shape_of(word(name)); }

std::optional<TensorShape> StepCall::result(uint32_t index) const {
  return index < step_.num_results ? shape_of(plan_.words[step_.results + index]) : std::nullopt;
}

std::vector<TensorShape> StepCall::tensors(std::string_view name) const {
  const FxWord list = word(name);
  std::vector<TensorShape> shapes;
  if (kind_of(list) != FX_WORD_LIST) return shapes;
  for (const FxWord item : items_of(plan_, list)) {
    std::optional<TensorShape> shape = shape_of(item);
    if (!shape.has_value()) return {};
    shapes.push_back(*std::move(shape));
  }
  return shapes;
}

std::optional<ScalarValue> StepCall::number(std::string_view name) const {
  const FxWord given = word(name);
  if (given != kNoWord) return values_.value(given);
  const SchemaDefault* value = default_of(name);
  if (value == nullptr) return std::nullopt;
  switch (value->kind) {
    case SchemaDefault::Kind::kBool:
      return ScalarValue::of_bool(value->integer != 0);
    case SchemaDefault::Kind::kInt:
      return ScalarValue::of(value->integer);
    case SchemaDefault::Kind::kFloat:
      return ScalarValue::of_real(value->real);
    default:
      return std::nullopt;
  }
}

std::optional<int64_t> StepCall::integer(std::string_view name) const {
  const std::optional<ScalarValue> value = number(name);
  return value.has_value() && value->type != FX_SCALAR_FLOAT ? std::optional(value->integer) : std::nullopt;
}

std::optional<std::vector<int64_t>> StepCall::integers(std::string_view name) const {
  const FxWord given = word(name);
  if (given == kNoWord) {
    const SchemaDefault* value = default_of(name);
    return value != nullptr && value->kind == SchemaDefault::Kind::kInts ? std::optional(value->integers)
                                                                         : std::nullopt;
  }
  if (kind_of(given) != FX_WORD_LIST) {  // `int[1] dim` accepts a number
    const std::optional<int64_t> one = values_.integer(given);
    return one.has_value() ? std::optional(std::vector<int64_t>{*one}) : std::nullopt;
  }
  std::vector<int64_t> numbers;
  for (const FxWord item : items_of(plan_, given)) {
    const std::optional<int64_t> number = values_.integer(item);
    if (!number.has_value()) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<DType> StepCall::dtype(std::string_view name) const {
  const FxWord given = word(name);
  return kind_of(given) == FX_WORD_DTYPE ? std::optional(static_cast<DType>(index_of(given))) : std::nullopt;
}

std::optional<MemoryFormat> StepCall::memory_format(std::string_view name) const {
  const FxWord given = word(name);
  if (kind_of(given) != FX_WORD_FORMAT) return std::nullopt;
  return static_cast<MemoryFormat>(index_of(given));
}

}  // namespace fxopt
