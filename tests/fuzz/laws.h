#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/graph/module.h"

namespace fxopt {

// Invariants of every module that a reader accepted, well formed or not. Each function returns a
// description of the broken invariant, or the empty string if none is broken.

// Checks that saving, loading and saving again gives the same bytes, also through text and, with
// `with_json`, through JSON. Runs the verifier and, if the main graph's nodes are in order, the
// storage and memory analyses. A module with malformed unknown fields cannot be saved and passes
// here; difference_from() covers it.
std::string broken_law(const Module& module, bool with_json);

// If `module` is valid, runs pipeline number `choice` of a list over it. The output must be well
// formed and obey the invariants above. Each pass must report whether it changed the module. The
// pipeline may reject an input only for its tags or phases, or if a pass does not apply to it.
std::string broken_pipeline(Module& module, uint64_t choice);

// Compares `module`, read from `file`, with the messages in `file`.
std::string difference_from(std::string_view file, const Module& module);

// For programs that report only crashes: prints `broken` and aborts unless it is empty.
void require_law(const std::string& broken);

}  // namespace fxopt
