#pragma once

#include <string>

#include "runtime/abi/plan.h"

namespace fxopt {

// A word for people: "t3" a tensor, "n2" a scalar, numbers, lists in brackets.
std::string word_text(const FxPlan& plan, FxWord word);
// "f32[2, 16](16, 1)+4 on s7": sizes, strides where they are not row-major, the offset where there is one, the storage.
std::string tensor_text(const FxPlan& plan, uint32_t tensor);

// The whole plan, a line for each input, scalar, storage, step and output; of graphs that steps call behind it.
// O(size of the plan).
std::string print_plan(const FxPlan& plan);
// Where the storages of one device lie: a line for each in the arena by offset, then streams and events where there are
// several. O(size of both).
std::string print_placement(const FxPlan& plan, const FxPlacement& placement);

}  // namespace fxopt
