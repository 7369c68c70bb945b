#pragma once

#include "ir/graph/module.h"
#include "ir/step/facts.h"

namespace fxopt {

// What a pass is given besides the graph and its options.
struct PassContext {
  explicit PassContext(const Module& module) : facts(module) {}

  // Of the module's graphs, kept while they do not change. Whoever runs passes one after the other on one context calls
  // Facts::forget() after each that changed the graph.
  ModuleFacts facts;
};

}  // namespace fxopt
