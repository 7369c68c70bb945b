#pragma once

#include <string>

#include "core/result.h"
#include "ir/graph/module.h"

namespace fxopt {

// Moves the graphs of `from`, and everything to which they refer, into `into`. The moved graphs
// follow the graphs of `into`. Afterwards, `from` must not be used. After an error, neither module
// may be used. `file` names `from` in the error.
//
// Symbols with the same name must have equal kinds, types and ranges. If both have a hint, the
// hints must be equal. Process groups, meshes, operator schemas, random generators (RngSlot) and
// streams with the same name must be equal. The traced ranks must be equal as well. Equal constants
// are merged. If a graph of `into` has the name of a graph of `from`, the graph of `from` gets a
// new name that depends on its kind. If different constants have the same name, the constant of
// `from` gets a suffix. Uids and storage ids of `from` are raised above those of `into`. `into`
// keeps its name, producer, metadata, profile and memory plan.
//
// Fails with kBadStep if the two modules contradict each other. Fails with kFileTooLarge if `from`
// is too large for the binary form. O(size of both).
Status merge_module(Module& into, Module& from, const std::string& file);

}  // namespace fxopt
