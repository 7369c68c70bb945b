#pragma once

#include <string>
#include <string_view>

#include "ir/step/facts.h"
#include "passes/pass/pass.h"

namespace fxopt {

// The reason why a pass leaves a collective unchanged.
struct Obstacle {
  // The stable name of the reason, such as "other-group". The name is empty if no obstacle exists.
  std::string code;
  std::string text;  // the reason in words
};

// Warns that a pass leaves all collectives unchanged because autograd may differentiate the graph.
// Returns true if it warns. `what` states the consequence, such as "nothing is merged".
inline bool warn_if_differentiated(Facts& facts, std::string_view what, PassResult& result) {
  if (!facts.is_differentiated()) return false;
  result.warn(facts.graph(), "may-differentiate",
              std::string(what) +
                  ", because autograd may differentiate this graph, and the backward of the changed graph would run "
                  "different collectives");
  return true;
}

}  // namespace fxopt
