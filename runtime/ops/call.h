#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph/types.h"
#include "runtime/abi/plan.h"
#include "runtime/plan/evaluate.h"

namespace fxopt {

struct Op;
struct SchemaDefault;

// A tensor with numeric sizes and strides. The rules in rules.h take and return these shapes.
struct TensorShape {
  DType dtype = DType::kUnspecified;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;

  size_t rank() const { return sizes.size(); }
  int64_t elements() const;
  bool operator==(const TensorShape&) const = default;
};

// Returns row-major strides. A size below 1 counts as 1.
std::vector<int64_t> contiguous_strides(const std::vector<int64_t>& sizes);
TensorShape contiguous(DType dtype, std::vector<int64_t> sizes);
// Returns true if the elements are in row-major order without gaps. Strides of dimensions of size 1
// are ignored.
bool is_contiguous(const TensorShape& shape);
// Returns true if the elements fill their memory without gaps and without overlaps, in some order
// of the dimensions.
bool is_dense(const TensorShape& shape);
// Returns true if dtypes, sizes and strides are equal. Strides of dimensions of size 1, and strides
// of tensors without elements, are ignored.
bool same_layout(const TensorShape& a, const TensorShape& b);

// Calls visit(name) for each name in a list such as "self other".
template <class Visit>
void for_each_name(std::string_view names, const Visit& visit) {
  while (!names.empty()) {
    const size_t end = std::min(names.find(' '), names.size());
    visit(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
}

// Returns the dtype of a Python number in PyTorch's type promotion.
DType dtype_of_number(FxScalarType type);

// The arguments of one call, by their names in the operator's schema. Sizes and scalars have
// numeric values.
class StepCall {
 public:
  StepCall(const FxPlan& plan, const ScalarValues& values, const FxStep& step, const Op* op)
      : plan_(plan), values_(values), step_(step), op_(op) {}

  // Returns the argument with this name as an FxWord. Returns kNoWord if the argument is missing or
  // None.
  FxWord word(std::string_view name) const;
  bool is_given(std::string_view name) const;

  std::optional<TensorShape> tensor(std::string_view name) const;
  std::optional<TensorShape> shape_of(FxWord word) const;
  // Returns the tensors of a list. Returns an empty vector if a tensor is unknown.
  std::vector<TensorShape> tensors(std::string_view name) const;

  // integer(), number() and integers() use the schema's default if the argument is missing or None.
  // All these functions return nullopt if the value is unknown.
  std::optional<int64_t> integer(std::string_view name) const;
  std::optional<ScalarValue> number(std::string_view name) const;
  std::optional<std::vector<int64_t>> integers(std::string_view name) const;
  std::optional<DType> dtype(std::string_view name) const;
  std::optional<MemoryFormat> memory_format(std::string_view name) const;

  const FxStep& step() const { return step_; }
  const FxPlan& plan() const { return plan_; }
  // Returns result `index` as the plan records it. Returns nullopt if the result is not a tensor or
  // has an unknown size.
  std::optional<TensorShape> result(uint32_t index) const;

 private:
  // Returns nullptr if the schema has no argument with this name.
  const SchemaDefault* default_of(std::string_view name) const;

  const FxPlan& plan_;
  const ScalarValues& values_;
  const FxStep& step_;
  const Op* op_;
};

}  // namespace fxopt
