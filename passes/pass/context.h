#pragma once

#include "ir/cost/costs.h"
#include "ir/graph/module.h"
#include "ir/memory/footprint.h"
#include "ir/step/facts.h"

namespace fxopt {

// What a pass is given besides the graph or module and its options.
struct PassContext {
  explicit PassContext(const Module& module) : facts(module) {}

  // Of the module's graphs, kept while they do not change. Whoever runs passes one after the other on one context calls
  // forget() after each that changed something: of the graph, or of all of them after a pass on the module.
  ModuleFacts facts;
  // How a pass measures memory: device profile, values of symbols, allocator.
  MeasureOptions measure;
  // What tells what calls cost: CostTable(graph, costs).
  CostSources costs;
};

}  // namespace fxopt
