#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "runtime/abi/plan.h"
#include "runtime/ops/call.h"
#include "runtime/plan/plan.h"

namespace fxopt {

// A tensor of a plan with numeric sizes, and the offset of its first element in its storage.
struct PlacedTensor {
  TensorShape shape;
  int64_t offset = 0;  // in bytes
  uint32_t storage = FX_NONE;
};

// Returns a tensor with numeric sizes. Returns nullopt if a size is unknown or the plan does not
// record the sizes. O(rank).
std::optional<PlacedTensor> placed_tensor(const FxPlan& plan, const ScalarValues& values, uint32_t tensor);

// Calls visit(index, const PlacedTensor&) for each tensor result of a step of the plan. Results
// without memory are left out. O(results * rank).
template <class Visit>
void for_each_result(const FxPlan& plan, const ScalarValues& values, uint32_t step, const Visit& visit) {
  const FxStep& row = plan.steps[step];
  for (uint32_t i = 0; i < row.num_results; ++i) {
    const FxWord word = plan.words[row.results + i];
    if (kind_of(word) != FX_WORD_TENSOR) continue;
    const std::optional<PlacedTensor> tensor = placed_tensor(plan, values, index_of(word));
    if (tensor.has_value() && tensor->storage != FX_NONE) visit(i, *tensor);
  }
}

// Returns the elements in row-major order without padding. `storage` is the memory of the tensor's
// storage. `storage` may be null only if the tensor has no elements. O(elements).
std::vector<std::byte> copy_out(const PlacedTensor& tensor, const void* storage);
// Copies elements in row-major order to a storage, as the inverse of copy_out(). `bytes` must have
// exactly the size of the elements. O(elements).
void copy_in(const PlacedTensor& tensor, std::span<const std::byte> bytes, void* storage);

// Counts the elements that are infinite or NaN. `storage` is the memory of the tensor's storage.
// O(elements).
size_t count_not_finite(const PlacedTensor& tensor, const void* storage);

// Returns, for each output, the name that the output has in an output file. The name is the
// output's name in the model if this name is unique. Otherwise the name is output_N. O(outputs log
// outputs).
std::vector<std::string> output_names(const FxPlan& plan);

}  // namespace fxopt
