#pragma once

#include "ir/cost/costs.h"
#include "ir/graph/module.h"
#include "ir/memory/footprint.h"
#include "ir/step/facts.h"

namespace fxopt {

// The inputs of a pass besides the graph or module and its options.
struct PassContext {
  explicit PassContext(const Module& module) : facts(module) {}

  // Facts about the module's graphs, kept while the graphs do not change. A caller that runs
  // several passes on one context calls forget() after each pass that changed something: for the
  // changed graph, or for all graphs after a pass on the module.
  ModuleFacts facts;
  // How a pass measures memory: device profile, values of symbols, allocator.
  MeasureOptions measure;
  // How to estimate the cost of calls: CostTable(graph, costs).
  CostSources costs;
};

}  // namespace fxopt
