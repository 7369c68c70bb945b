#pragma once

#include <optional>

#include "ir/graph/types.h"

namespace fxopt {

// Returns the smallest dtype that holds both, as torch.promote_types (c10/core/ScalarType.cpp).
// Returns nullopt if PyTorch refuses (float8, quantized and wider unsigned types with other types).
// O(1).
std::optional<DType> promote_types(DType a, DType b);

// The inputs of one promotion. Dtypes of tensors with dimensions win over dtypes of tensors
// without, and these over Python numbers, unless the latter are of a higher category (bool,
// integer, real, complex). ATen/native/TypeProperties.cpp.
struct ResultType {
  std::optional<DType> dims, zero_dims, numbers;
  bool is_known = true;  // false: promote_types() had no answer

  void add_tensor(DType dtype, bool has_dims);
  // `dtype` of a Python number: bool, int64, float64 for a float, complex128.
  void add_number(DType dtype);
  // Returns nullopt if there was no operand, or no answer. `default_real`: the dtype of a Python
  // float that meets no real tensor.
  std::optional<DType> get(DType default_real = DType::kFloat32) const;
};

}  // namespace fxopt
