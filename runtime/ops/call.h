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

// A tensor in numbers: what a rule is given, and what it gives.
struct TensorShape {
  DType dtype = DType::kUnspecified;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;

  size_t rank() const { return sizes.size(); }
  int64_t elements() const;
  bool operator==(const TensorShape&) const = default;
};

// Row-major strides; a size below 1 counts as 1.
std::vector<int64_t> contiguous_strides(const std::vector<int64_t>& sizes);
TensorShape contiguous(DType dtype, std::vector<int64_t> sizes);
// Whether elements lie in row-major order; strides of sizes of 1 are not asked for.
bool is_contiguous(const TensorShape& shape);
// Whether some order of the dimensions is dense, and no two elements share memory.
bool is_dense(const TensorShape& shape);
// Whether both are the same, but for the strides of dimensions of one element and of tensors without any.
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

// As PyTorch promotes a number of Python's.
DType dtype_of_number(FxScalarType type);

// The arguments of one step by the names in the operator's schema, in numbers.
class StepCall {
 public:
  StepCall(const FxPlan& plan, const ScalarValues& values, const FxStep& step, const Op* op)
      : plan_(plan), values_(values), step_(step), op_(op) {}

  // The argument of that name as it was given; kNoWord-like NONE where it was not, or is None.
  FxWord word(std::string_view name) const;
  bool is_given(std::string_view name) const;

  std::optional<TensorShape> tensor(std::string_view name) const;
  std::optional<TensorShape> shape_of(FxWord word) const;
  std::vector<TensorShape> tensors(std::string_view name) const;  // of a list; empty where one is not known

  // With the schema's default where it was not given. Nothing where it is None or not known.
  std::optional<int64_t> integer(std::string_view name) const;
  std::optional<ScalarValue> number(std::string_view name) const;
  std::optional<std::vector<int64_t>> integers(std::string_view name) const;
  std::optional<DType> dtype(std::string_view name) const;
  std::optional<MemoryFormat> memory_format(std::string_view name) const;

  const FxStep& step() const { return step_; }
  const FxPlan& plan() const { return plan_; }
  // What the plan says of result `index`, where it is a tensor whose sizes are known.
  std::optional<TensorShape> result(uint32_t index) const;

 private:
  const SchemaDefault* default_of(std::string_view name) const;  // nullptr: the schema has no argument of that name

  const FxPlan& plan_;
  const ScalarValues& values_;
  const FxStep& step_;
  const Op* op_;
};

}  // namespace fxopt
