#pragma once

#include <string>

#include "runtime/abi/plan.h"

namespace fxopt {

// Formats a word for people. "t3" is a tensor, and "n2" is a scalar. Lists are in brackets.
std::string word_text(const FxPlan& plan, FxWord word);
// Formats a tensor as text such as "f32[2, 16](1, 2)+4 on s7". The text has the dtype, the sizes,
// the strides, the offset and the storage. Row-major strides and an offset of 0 are omitted.
std::string tensor_text(const FxPlan& plan, uint32_t tensor);

// Prints the whole plan, with one line for each input, scalar, storage, step and output. The graphs
// that the plan calls follow. O(size of the plan).
std::string print_plan(const FxPlan& plan);
// Prints the arena of one device, with one line for each storage, sorted by offset. Then prints one
// line for each event between streams. O(size of both).
std::string print_placement(const FxPlan& plan, const FxPlacement& placement);

}  // namespace fxopt
