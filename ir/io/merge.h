#pragma once

#include <string>

#include "core/result.h"
#include "ir/graph/module.h"

namespace fxopt {

// Moves the graphs of `from`, with everything they refer to, into `into`, after its own graphs.
// `from` is spent. After an error neither module may be used; `file` names `from` in the error.
//
// Records of one name must agree: ranges and hints of symbols, ranks of groups, meshes, operator
// schemas, random slots, streams. So must the traced ranks. Equal constants are merged. If both
// modules use one graph or constant name for different things, `from` changes: the graph is named
// after its kind, the constant gets a suffix. Uids and storage ids of `from` continue those of
// `into`. `into` keeps its name, producer, metadata and carried messages.
//
// Errors: kBadStep; kFileTooLarge if `from` is too large for the binary form. O(size of both).
Status merge_module(Module& into, Module& from, const std::string& file);

}  // namespace fxopt
