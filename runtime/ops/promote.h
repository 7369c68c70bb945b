#pragma once

#include <optional>

#include "ir/graph/types.h"

namespace fxopt {

// Returns the dtype to which PyTorch promotes two dtypes, like torch.promote_types
// (c10/core/ScalarType.cpp). Returns nullopt if PyTorch refuses the pair. PyTorch refuses to
// combine float8, a quantized type or an unsigned type wider than uint8 with any other type. O(1).
std::optional<DType> promote_types(DType a, DType b);

// The inputs of one type promotion, as in ATen/native/TypeProperties.cpp. Tensors with dimensions
// come first, then tensors without dimensions, then Python numbers. A later group changes the
// result only if its dtype has a higher category. The categories are bool, integer, real and
// complex, from lowest to highest.
struct ResultType {
  std::optional<DType> dims, zero_dims, numbers;
  bool is_known = true;  // false if promote_types() returned nullopt

  void add_tensor(DType dtype, bool has_dims);
  // `dtype` is the dtype of the Python number: bool, int64, float64 for a float, or complex128.
  void add_number(DType dtype);
  // Returns the promoted dtype. Returns nullopt if there was no operand, or if promote_types()
  // returned nullopt. `default_real` is the dtype of a Python float if no operand is a real tensor.
  std::optional<DType> get(DType default_real = DType::kFloat32) const;
};

}  // namespace fxopt
