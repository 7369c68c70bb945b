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

// Verdicts on tags: whether a tag was carried out. `remat` writes the verdicts. forecast_tags()
// predicts the verdicts for a graph on which `remat` has not run.

namespace fxopt {

// All data that `remat` reads before it makes a plan. The object refers to the graph and its facts,
// and is valid until they change.
struct RematFacts {
  // Decides from the tags of the graph which values are recomputed (decide_tags()).
  RematFacts(Facts& facts, Compat compat);
  // Uses the decisions `decided` of the caller. These decisions may have other sources than tags,
  // such as a minimal cut.
  RematFacts(Facts& facts, TagDecisions decided);

  const PhaseMap& phases;
  bool holds_backward = false;  // whether some node has the phase backward, recorded or inferred
  EffectMap& effects;
  const StorageMap& storages;
  RepeatRules repeats;
  TagDecisions decisions;
  Reloads reloads;
};

// True for a view whose memory stays even if the view is recomputed. The view is then a view of an
// input, or a view of a value that `plan` does not recompute. `plan` may be incomplete.
bool is_view_of_kept(const RematFacts& facts, const RematPlan& plan, NodeId node);

// Returns the verdict on each tagged node:
//   honoured:    the value is recomputed or saved, as tagged
//   moot:        neither backward nor a recomputed copy reads the value, directly or through a
//                view. The verdict is also moot in a second case: the value is tagged for
//                recompute, only recomputed copies read the value, and the value is a view of
//                memory that is kept anyway.
//   overridden:  backward or a recomputed copy reads the value, but a rule decided against the tag.
//                The verdict names this rule. Ignored tags on backward nodes are also overridden.
//   implied:     the value is a view of memory that is kept anyway, and backward reads the view.
//                Nothing needs to be recomputed (rule kept_anyway).
//   conflicting: the value is tagged for recompute, but would differ if it were recomputed (rule
//                unrepeatable)
// O(nodes + edges).
IdMap<NodeId, TagVerdict> judge_tags(const Graph& graph, const RematPlan& plan, const RematFacts& facts);

// Returns the verdict on each value with the save mark `ap_must_save`, in schedule order:
//   honoured:    backward or a recomputed copy reads the saved value, or a view of the value
//   moot:        neither backward nor a recomputed copy reads the value, directly or through a view
//   overridden:  backward recomputes the value, because of the rule in the verdict
// The first element of a pair is the marked value. If one result of a call is marked, the marked
// value is the getitem of the result. Getitems of one result share one verdict. O(nodes + edges).
std::vector<std::pair<NodeId, TagVerdict>> judge_marks(const Graph& graph, const RematPlan& plan,
                                                       const RematFacts& facts);

// The verdicts that `remat` would write. If `remat` would refuse a tag, the verdict on this tag is
// `conflicting`.
struct TagForecast {
  // For an untagged node, only the field `rule` of the verdict is set.
  IdMap<NodeId, TagVerdict> verdicts;
  std::vector<std::pair<NodeId, TagVerdict>> marks;  // as in judge_marks()
  IdMap<NodeId, bool> recomputed;                    // whether some region would copy the node
  // Whether backward of the input graph reads the value or a view of the value.
  IdMap<NodeId, bool> read;
  // Whether `read` is true, or a recomputed copy would read the value or a view of the value.
  IdMap<NodeId, bool> needed;
  bool holds_backward = false;
};
TagForecast forecast_tags(const Graph& graph, const RematOptions& options);

}  // namespace fxopt
