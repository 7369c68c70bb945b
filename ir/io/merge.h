#pragma once

#include <string>

#include "core/result.h"
#include "ir/graph/module.h"

namespace fxopt {

// Puts the graphs of `from` into `into`, after its own, with all that they name. What both name must be the same: the
// ranges and hints of symbols, the ranks of groups, meshes, operator schemas, random slots, streams, the traced rank.
// Equal constants become one. Of names that both use for something else those of `from` change: a graph is named for
// its kind, a constant gets a suffix. Uids and storage ids of `from` count on from those of `into`. Name, producer,
// metadata and carried messages of `into` stay. `from` is spent, and after an error both are; `file` names it there.
// Errors: kBadStep, and kFileTooLarge where `from` is too large for the binary form. O(size of both).
Status merge_module(Module& into, Module& from, const std::string& file);

}  // namespace fxopt
