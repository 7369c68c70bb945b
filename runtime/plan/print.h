#pragma once

#include <string>

#include "runtime/abi/plan.h"

namespace fxopt {

// Formats a word for people: "t3" a tensor, "n2" a scalar, numbers, lists in brackets.
std::string word_text(const FxPlan& plan, FxWord word);
// Formats "f32[2, 16](16, 1)+4 on s7": sizes, strides unless row-major, a nonzero offset, the
// storage.
std::string tensor_text(const FxPlan& plan, uint32_t tensor);

// Prints the whole plan: a line for each input, scalar, storage, step and output. Called graphs
// follow it. O(size of the plan).
std::string print_plan(const FxPlan& plan);
// Prints the arena of one device: a line for each storage by offset. Then prints streams and events
// if there are several. O(size of both).
std::string print_placement(const FxPlan& plan, const FxPlacement& placement);

}  // namespace fxopt
