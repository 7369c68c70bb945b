#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph/module.h"

namespace fxopt {

// All save and recompute decisions of a module. A decision is a tag, or the save mark
// `ap_must_save` of an earlier compilation (ir/step/marks.h). It is stored on a node or in the
// ledger of erased nodes (Module::erased). If a tag was copied to other nodes
// (TagSource::is_copied), only the tag of the original node is included.
struct Decisions {
  std::vector<uint64_t> tags;  // the uids of the tagged nodes, sorted
  // The names that the values with a save mark had in the earlier compilation, sorted.
  std::vector<std::string> marks;
};
// O(nodes + decisions log decisions).
Decisions find_decisions(const Module& module);

// Describes the first decision that is missing from `after`, or that is in `after` twice. Returns
// "" if `after` has every decision of `before` exactly once. Passes may add decisions.
// O(decisions).
std::string broken_decision(const Decisions& before, const Decisions& after);

}  // namespace fxopt
