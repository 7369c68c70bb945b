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

// A tensor with numeric sizes and strides: input and result of rules.
struct TensorShape {
  DType dtype = DType::kUnspecified;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;

  size_t rank() const { return sizes.size(); }
  int64_t elements() const;
  bool operator==(const TensorShape&) const = default;
};

// Returns row-major strides; a size below 1 counts as 1.
std::vector<int64_t> contiguous_strides(const std::vector<int64_t>& sizes);
TensorShape contiguous(DType dtype, std::vector<int64_t> sizes);
// Returns true if elements are in row-major order. Strides of dimensions of size 1 are ignored.
bool is_contiguous(const TensorShape& shape);
// Returns true if some order of the dimensions is dense and no two elements share memory.
bool is_dense(const TensorShape& shape);
// Returns true if both are equal. Strides of dimensions of size 1, and of tensors without elements,
// are ignored.
bool same_layout(const TensorShape& a, const TensorShape& b);

// Calls visit(name) for each word of "self other".
template <class Visit>
void for_each_name(std::string_view names, const Visit& visit) {
  while (!names.empty()) {
    const size_t end = std::min(names.find(' '), names.size());
    visit(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
}

// The dtype to which PyTorch promotes a Python number.
DType dtype_of_number(FxScalarType type);

// The arguments of one step by the names in the operator's schema, with numeric values.
class StepCall {
 public:
  StepCall(const FxPlan& plan, const ScalarValues& values, const FxStep& step, const Op* op)
      : plan_(plan), values_(values), step_(step), op_(op) {}

  // Returns the argument of that name as it was given, or a NONE word (like kNoWord) if it is
  // missing or None.
  FxWord word(std::string_view name) const;
  bool is_given(std::string_view name) const;

  std::optional<TensorShape> tensor(std::string_view name) const;
  std::optional<TensorShape> shape_of(FxWord word) const;
  // a list's tensors; empty if one is unknown
  std::vector<TensorShape> tensors(std::string_view name) const;

  // Uses the schema's default if the argument is missing. Returns nullopt if it is None or unknown.
  std::optional<int64_t> integer(std::string_view name) const;
  std::optional<ScalarValue> number(std::string_view name) const;
  std::optional<std::vector<int64_t>> integers(std::string_view name) const;
  std::optional<DType> dtype(std::string_view name) const;
  std::optional<MemoryFormat> memory_format(std::string_view name) const;

  const FxStep& step() const { return step_; }
  const FxPlan& plan() const { return plan_; }
  // Returns result `index` as the plan records it, if it is a tensor of known sizes.
  std::optional<TensorShape> result(uint32_t index) const;

 private:
  // nullptr: the schema has no argument of that name
  const SchemaDefault* default_of(std::string_view name) const;

  const FxPlan& plan_;
  const ScalarValues& values_;
  const FxStep& step_;
  const Op* op_;
};

}  // namespace fxopt
