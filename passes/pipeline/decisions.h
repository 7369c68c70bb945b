#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph/module.h"

namespace fxopt {

// All save and recompute decisions of a module: tags, and marks of a first partition
// (ir/step/marks.h), on nodes or in the ledger of erased nodes. A copied tag
// (TagSource::is_copied) counts for its original node only.
struct Decisions {
  std::vector<uint64_t> tags;      // by uid of the node, sorted
  std::vector<std::string> marks;  // by name of the value in the first partition, sorted
};
// O(nodes + decisions log decisions).
Decisions find_decisions(const Module& module);

// Describes the first decision that is missing from `after`, or in it twice. Empty if every pass
// kept each earlier decision exactly once; passes may add decisions. O(decisions).
std::string broken_decision(const Decisions& before, const Decisions& after);

}  // namespace fxopt
