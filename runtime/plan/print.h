#pragma once

#include <string>

#include "runtime/abi/plan.h"

namespace fxopt {

// Formats an argument or result of a plan (FxWord) as text. "t3" is tensor 3, and "n2" is scalar 2.
// Lists are in brackets.
std::string word_text(const FxPlan& plan, FxWord word);
// Formats a tensor as text such as "f32[2, 16](1, 2)+4 on s7". The text has the dtype, the sizes,
// the strides, the offset and the storage. Row-major strides and an offset of 0 are omitted.
std::string tensor_text(const FxPlan& plan, uint32_t tensor);

// Prints the whole plan, with one line for each input, scalar, storage, step and output. Then, in
// the same way, prints the graphs that the plan calls. O(size of the plan).
std::string print_plan(const FxPlan& plan);
// Prints the arena of one device, with one line for each storage, sorted by offset. Then prints one
// line for each event between streams. O(size of the plan and the placement).
std::string print_placement(const FxPlan& plan, const FxPlacement& placement);

}  // namespace fxopt
