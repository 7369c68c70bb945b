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

// A tensor copied out of a program: row-major without padding.
struct NamedTensor {
  std::string name;
  DType dtype = DType::kUnspecified;
  std::vector<int64_t> sizes;
  std::vector<std::byte> bytes;
  uint32_t output = FX_NONE;  // index of the plan's output
  uint32_t step = FX_NONE;    // the step that made it, if it is not an output
};

// Returns nullopt for an output that is not a tensor or has no memory. O(rank).
std::optional<PlacedTensor> output_tensor(const FxPlan& plan, const ScalarValues& values, uint64_t output);

// Copies the outputs that are tensors, named by output_names(). O(bytes).
std::vector<NamedTensor> copy_outputs(const Program& program, const ScalarValues& values);

// Copies the results of a step, named after its node; several results are NODE.0, NODE.1, ...
// O(bytes).
std::vector<NamedTensor> copy_results(const Program& program, const ScalarValues& values, uint32_t step);

}  // namespace fxopt
