#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/graph/module.h"

namespace fxopt {

// What became of one tagged node.
struct TagOutcome {
  std::string graph;
  std::string node;
  Tag tag = Tag::kNone;
  Verdict verdict = Verdict::kNone;  // kNone: the node is there, and no pass has judged its tag
  uint32_t rule = 0;
  std::string pass;
};

// Of all tagged nodes: those of the graphs in schedule order, then those of the ledger of erased nodes. An erased node
// without a verdict is implied when another node took its place (it was merged), else dropped by the pass that erased
// it. O(nodes + origins).
std::vector<TagOutcome> tag_outcomes(const Module& module);

// By verdict.
std::map<std::string, int64_t> count_verdicts(const std::vector<TagOutcome>& outcomes);

}  // namespace fxopt
