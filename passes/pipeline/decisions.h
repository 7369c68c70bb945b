#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph/module.h"

namespace fxopt {

// The decisions of a module on what is saved and what is recomputed: every tag, and every mark of a first partition (ir/step/marks.h), on a
// node or in the ledger of erased nodes. A tag that a node took over from others (TagSource::is_copied) is theirs.
struct Decisions {
  std::vector<uint64_t> tags;      // by uid of the node, sorted
  std::vector<std::string> marks;  // by name of the value in the first partition, sorted
};
// O(nodes + decisions log decisions).
Decisions find_decisions(const Module& module);

// The law that every pass keeps: each decision of before is there after it, once. The first one that is not, in words; empty where the law
// holds. A pass may add decisions. O(decisions).
std::string broken_decision(const Decisions& before, const Decisions& after);

}  // namespace fxopt
