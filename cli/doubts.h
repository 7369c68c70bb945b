#pragma once

#include <string>

#include "cli/console.h"
#include "ir/step/doubts.h"
#include "ir/step/facts.h"

namespace fxopt {

// Prints a warning for each doubt about the graph: see ir/step/doubts.h. `file` is the name that
// messages use for the file.
void warn_of_doubts(Console& console, const std::string& file, const Graph& graph, const PhaseMap& phases,
                    const StorageSource& storages);
// Prints a warning for each doubt about each top-level graph of the module. `facts` must belong to
// `module`.
void warn_of_doubts(Console& console, const std::string& file, const Module& module, ModuleFacts& facts);

}  // namespace fxopt
