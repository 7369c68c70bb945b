#pragma once

#include <optional>

#include "ir/graph/types.h"

namespace fxopt {

// The smallest dtype that holds both, as torch.promote_types; nothing where PyTorch has no answer (float8, quantized and
// wider unsigned types with others). c10/core/ScalarType.cpp. O(1).
std::optional<DType> promote_types(DType a, DType b);

// What takes part in the promotion of one operand: dtypes of tensors with dimensions win over those of tensors without,
// these over Python's numbers, unless the later ones are of a higher category (bool, integer, real, complex).
// ATen/native/TypeProperties.cpp.
struct ResultType {
  std::optional<DType> dims, zero_dims, numbers;
  bool is_known = true;  // false: promote_types() had no answer

  void add_tensor(DType dtype, bool has_dims);
  // Of a Python number: bool, int64, float64 for a float, complex128.
  void add_number(DType dtype);
  // Nothing where there was no operand, or no answer. `float` is the dtype of a float that meets no real tensor: the default.
  std::optional<DType> get(DType default_real = DType::kFloat32) const;
};

}  // namespace fxopt
