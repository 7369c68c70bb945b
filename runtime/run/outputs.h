#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph/types.h"
#include "runtime/run/program.h"
#include "runtime/run/tensors.h"

namespace fxopt {

// A tensor that was copied out of a program, in row-major order without padding.
struct NamedTensor {
  std::string name;
  DType dtype = DType::kUnspecified;
  std::vector<int64_t> sizes;
  std::vector<std::byte> bytes;
  uint32_t output = FX_NONE;  // index in FxPlan::outputs, if the tensor is an output
  uint32_t step = FX_NONE;    // the step that made the tensor, if the tensor is not an output
};

// Returns the tensor of an output. Returns nullopt if the output is not a tensor, has no memory, or
// has an unknown size. O(rank).
std::optional<PlacedTensor> output_tensor(const FxPlan& plan, const ScalarValues& values, uint64_t output);

// Copies the outputs that are tensors. The copies have the names that output_names() returns.
// O(bytes).
std::vector<NamedTensor> copy_outputs(const Program& program, const ScalarValues& values);

// Copies the results of a step. If the step has one result, the copy has the name of the step's
// node. If the step has several results, the copies have the names NODE.0, NODE.1, ... O(bytes).
std::vector<NamedTensor> copy_results(const Program& program, const ScalarValues& values, uint32_t step);

}  // namespace fxopt
