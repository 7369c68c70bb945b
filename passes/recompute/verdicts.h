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

// What becomes of tags: the verdicts that remat writes, and the same foretold of a graph that it has not run on.

namespace fxopt {

// What remat looks at before it plans. Refers to the graph and its facts, and is good until they change.
struct RematFacts {
  RematFacts(Facts& facts, Compat compat);
  RematFacts(Facts& facts, TagDecisions decided);  // by whom else than the tags

  const PhaseMap& phases;
  bool holds_backward = false;  // some node is backward, marked or inferred
  EffectMap& effects;
  const StorageMap& storages;
  RepeatRules repeats;
  TagDecisions decisions;
  Reloads reloads;
};

// True for a view whose memory stays, whatever becomes of the view: of an input, of what is not recomputed, as far as
// `plan` is made.
bool is_view_of_kept(const RematFacts& facts, const RematPlan& plan, NodeId node);

// The verdict on each tagged node:
//   honoured     the value is recomputed, or saved, as tagged
//   moot         backward does not read the value, neither by itself nor through a view; nor does a copy, but for views
//                of memory that is kept anyway
//   overridden   backward reads it, and the rule named decided against the tag
//   implied      a view of memory that is kept anyway, which backward reads: there is nothing to recompute (rule
//                kept_anyway)
//   conflicting  tagged for recompute, and running it again would give something else (rule unrepeatable)
// O(nodes + edges).
IdMap<NodeId, TagVerdict> judge_tags(const Graph& graph, const RematPlan& plan, const RematFacts& facts);

// The verdict on each marked value, in schedule order:
//   honoured     backward reads the saved value, or a view of it
//   moot         backward does not read it
//   overridden   the rule named decided that backward recomputes it
// By marked value, a getitem where a part of a call is marked. Getitems of one part have one verdict.
// O(nodes + edges).
std::vector<std::pair<NodeId, TagVerdict>> judge_marks(const Graph& graph, const RematPlan& plan,
                                                       const RematFacts& facts);

// What remat with these options would write. Where remat would refuse a tag, that tag is conflicting.
struct TagForecast {
  IdMap<NodeId, TagVerdict> verdicts;  // of untagged nodes only the rule
  std::vector<std::pair<NodeId, TagVerdict>> marks;
  IdMap<NodeId, bool> recomputed;  // some region would copy the node
  IdMap<NodeId, bool> read;        // backward reads the value or a view of it, in the graph as it is
  IdMap<NodeId, bool> needed;      // the same, or a copy would
  bool holds_backward = false;
};
TagForecast forecast_tags(const Graph& graph, const RematOptions& options);

}  // namespace fxopt
