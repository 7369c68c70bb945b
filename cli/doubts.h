#pragma once

#include <string>

#include "cli/console.h"
#include "ir/step/doubts.h"
#include "ir/step/facts.h"

namespace fxopt {

// Warns of doubts about the graph (ir/step/doubts.h). `file`: as messages name it.
void warn_of_doubts(Console& console, const std::string& file, const Graph& graph, const PhaseMap& phases,
                    const StorageSource& storages);
// The same for every top-level graph of the module of `facts`.
void warn_of_doubts(Console& console, const std::string& file, const Module& module, ModuleFacts& facts);

}  // namespace fxopt
