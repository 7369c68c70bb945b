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

// A tensor of a plan in numbers, with the place of its first element in its storage.
struct PlacedTensor {
  TensorShape shape;
  int64_t offset = 0;  // in bytes
  uint32_t storage = FX_NONE;
};

// Nothing where a size is not known or nothing is recorded of it. O(rank).
std::optional<PlacedTensor> placed_tensor(const FxPlan& plan, const ScalarValues& values, uint32_t tensor);

// Calls visit(index, const PlacedTensor&) for each result of a step that has memory. O(results * rank).
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

// The elements in row-major order without padding. `storage`: of the tensor; null only where there are no elements. O(elements).
std::vector<std::byte> copy_out(const PlacedTensor& tensor, const void* storage);
// The other way. `bytes` must be as many as the elements take. O(elements).
void copy_in(const PlacedTensor& tensor, std::span<const std::byte> bytes, void* storage);

// Elements that are infinite or no numbers. `storage`: as above. O(elements).
size_t count_not_finite(const PlacedTensor& tensor, const void* storage);

// The names of outputs in files: the model's where it is the only one of it, else output_N. By output. O(outputs log outputs).
std::vector<std::string> output_names(const FxPlan& plan);

}  // namespace fxopt
