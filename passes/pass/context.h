#pragma once

#include "ir/cost/costs.h"
#include "ir/graph/module.h"
#include "ir/memory/footprint.h"
#include "ir/step/facts.h"

namespace fxopt {

// The inputs of a pass in addition to its options and its graph or module.
struct PassContext {
  explicit PassContext(const Module& module) : facts(module) {}

  // The results of analyses of the module's graphs (ir/step/facts.h). A caller that runs several
  // passes on one context must drop outdated results after each pass. facts.of(graph).forget()
  // drops the results for one graph. facts.forget() drops the results for all graphs.
  ModuleFacts facts;
  // How a pass measures memory: device profile, values of symbols, allocator.
  MeasureOptions measure;
  // The data for estimating the cost of calls, as in CostTable(graph, costs).
  CostSources costs;
};

}  // namespace fxopt
