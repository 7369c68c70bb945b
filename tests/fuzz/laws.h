#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/graph/module.h"

namespace fxopt {

// Invariants of every module that a reader accepted, well formed or not. Each function returns a
// description of the broken invariant, or the empty string if none is broken.

// Checks that saving, loading and saving again gives the same bytes. Repeats this check with the
// text form, and with JSON if `with_json` is true. Runs the verifier and, if the main graph's nodes
// are in order, the storage and memory analyses. A module with malformed unknown fields cannot be
// saved, so this function accepts it. difference_from() checks that case.
std::string broken_law(const Module& module, bool with_json);

// If `module` is valid, runs pipeline number `choice` of a list on the module. The output must be
// well formed and obey the invariants of broken_law(). Each pass must report whether it changed the
// module. The pipeline may reject an input only for its tags or phases, or if a pass does not apply
// to it.
std::string broken_pipeline(Module& module, uint64_t choice);

// Compares `module`, which was read from `file`, with the messages in `file`.
std::string difference_from(std::string_view file, const Module& module);

// If `broken` is not empty, prints `broken` and aborts. This function is for programs that report
// only crashes.
void require_law(const std::string& broken);

}  // namespace fxopt
