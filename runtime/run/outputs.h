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

// A tensor of a program, copied out: row-major without padding.
struct NamedTensor {
  std::string name;
  DType dtype = DType::kUnspecified;
  std::vector<int64_t> sizes;
  std::vector<std::byte> bytes;
  uint32_t output = FX_NONE;  // of the plan
  uint32_t step = FX_NONE;    // that gave it, where it is no output
};

// Nothing for an output that is no tensor or has no memory. O(rank).
std::optional<PlacedTensor> output_tensor(const FxPlan& plan, const ScalarValues& values, uint64_t output);

// The outputs that are tensors, by the names of output_names(). O(bytes).
std::vector<NamedTensor> copy_outputs(const Program& program, const ScalarValues& values);

// The results of a step, named after its node; results of several are NODE.0, NODE.1, ... O(bytes).
std::vector<NamedTensor> copy_results(const Program& program, const ScalarValues& values, uint32_t step);

}  // namespace fxopt
