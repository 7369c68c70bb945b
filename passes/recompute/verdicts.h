#pragma once

#include <utility>
#include <vector>

#include "core/result.h"
#include "ir/step/facts.h"
#include "ir/step/repeat.h"
#include "ir/step/tag_rules.h"
#include "passes/recompute/reloads.h"
#include "passes/recompute/remat.h"
#include "passes/recompute/remat_plan.h"

// Verdicts on tags: those that remat writes, and a forecast for a graph on which it has not run.

namespace fxopt {

// Everything that remat reads before it plans. Refers to the graph and its facts; valid until they
// change.
struct RematFacts {
  RematFacts(Facts& facts, Compat compat);
  RematFacts(Facts& facts, TagDecisions decided);  // decisions not made by tags

  const PhaseMap& phases;
  bool holds_backward = false;  // some node is backward, marked or inferred
  EffectMap& effects;
  const StorageMap& storages;
  RepeatRules repeats;
  TagDecisions decisions;
  Reloads reloads;
};

// True for a view whose memory stays even if the view is recomputed: a view of an input, or of a
// value that `plan`, as far as it is made, does not recompute.
bool is_view_of_kept(const RematFacts& facts, const RematPlan& plan, NodeId node);

// The verdict on each tagged node:
//   honoured     the value is recomputed or saved, as tagged
//   moot         backward does not read the value, directly or through a view. Copies do not read
//                it either, except as views of memory that is kept anyway
//   overridden   backward reads it, but the named rule decided against the tag
//   implied      a view of memory that is kept anyway, and backward reads it: nothing needs
//                recomputing (rule kept_anyway)
//   conflicting  tagged for recompute, but running it again would give another result (rule
//                unrepeatable)
// O(nodes + edges).
IdMap<NodeId, TagVerdict> judge_tags(const Graph& graph, const RematPlan& plan, const RematFacts& facts);

// The verdict on each marked value, in schedule order:
//   honoured     backward reads the saved value, or a view of it
//   moot         backward does not read it
//   overridden   the named rule made backward recompute it
// Keyed by marked value, which is a getitem if one result of a call is marked. Getitems of one
// result share one verdict. O(nodes + edges).
std::vector<std::pair<NodeId, TagVerdict>> judge_marks(const Graph& graph, const RematPlan& plan,
                                                       const RematFacts& facts);

// The verdicts that remat with these options would write. A tag that remat would refuse is
// conflicting.
struct TagForecast {
  IdMap<NodeId, TagVerdict> verdicts;  // untagged nodes have only a rule
  std::vector<std::pair<NodeId, TagVerdict>> marks;
  IdMap<NodeId, bool> recomputed;  // some region would copy the node
  IdMap<NodeId, bool> read;        // backward reads the value or a view of it, in the input graph
  IdMap<NodeId, bool> needed;      // the same, or a copy would read it
  bool holds_backward = false;
};
TagForecast forecast_tags(const Graph& graph, const RematOptions& options);

}  // namespace fxopt
