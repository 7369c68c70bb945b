#pragma once

#include <string>

#include "cli/console.h"
#include "ir/step/doubts.h"
#include "ir/step/facts.h"

namespace fxopt {

// Warns of what the graph shows (ir/step/doubts.h). `file` as it is shown.
void warn_of_doubts(Console& console, const std::string& file, const Graph& graph, const PhaseMap& phases,
                    const StorageSource& storages);
// The same of all top-level graphs of the module that `facts` are of.
void warn_of_doubts(Console& console, const std::string& file, const Module& module, ModuleFacts& facts);

}  // namespace fxopt
