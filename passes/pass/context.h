#pragma once

#include "ir/cost/costs.h"
#include "ir/graph/module.h"
#include "ir/memory/footprint.h"
#include "ir/step/facts.h"

namespace fxopt {

// The inputs of a pass in addition to its options and its graph or module.
struct PassContext {
  explicit PassContext(const Module& module) : facts(module) {}

  // Facts about the module's graphs. They stay valid as long as the graphs do not change. A caller
  // that runs several passes on one context calls forget() after each pass that changed something.
  // For a pass on the module, forget() drops the facts of all graphs, otherwise only the facts of
  // the changed graph.
  ModuleFacts facts;
  // How a pass measures memory: device profile, values of symbols, allocator.
  MeasureOptions measure;
  // The sources for estimating the cost of calls: CostTable(graph, costs).
  CostSources costs;
};

}  // namespace fxopt
