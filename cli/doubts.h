#pragma once

#include <string>

#include "cli/console.h"
#include "ir/step/doubts.h"
#include "ir/step/facts.h"

namespace fxopt {

// Prints a warning for each doubtful property of the graph: see find_doubts(). `file` is the name
// that messages use for the file.
void warn_of_doubts(Console& console, const std::string& file, const Graph& graph, const PhaseMap& phases,
                    const StorageSource& storages);
// Prints a warning for each doubtful property of each top-level graph: see find_doubts(). `facts`
// must belong to `module`.
void warn_of_doubts(Console& console, const std::string& file, const Module& module, ModuleFacts& facts);

}  // namespace fxopt
