#pragma once

#include "ir/graph/graph.h"
#include "ir/step/facts.h"
#include "ir/step/tag_rules.h"

// A training step may be compiled twice, and each compilation partitions the step into forward and
// backward. In the first compilation, the partitioner writes save marks on the values that it saves
// (`ap_must_save`, see ir/step/marks.h). This file computes the values that the second compilation
// saves because of these marks. It also finds the merges of nodes that would change these values.

namespace fxopt {

// Whether each forward value of a joint graph is saved or recomputed. A value with a save mark is
// saved, and all other values are recomputed, with these exceptions:
// - Symbols are saved.
// - Values that the author tagged MUST_SAVE are saved. A MUST_SAVE tag from the policy of a pass is
//   obeyed only if the value cannot be recomputed.
// - A recompute tag may win over a save mark, see decide_tags().
// - The base of a saved view is saved, because the view keeps the memory of the base (rule
//   `inherited`).
struct Replay {
  TagDecisions decisions;
  IdMap<NodeId, bool> is_read;  // whether backward or a recomputed node reads the value
};

// Applies the save marks of the graph. `prefer` states whether PREFER_RECOMPUTE wins over a mark.
// O(nodes + edges).
Replay replay_marks(const Graph& graph, Facts& facts, PreferRecompute prefer);

// Decides whether a pass may merge two equal nodes. The merge must not change which values are
// saved when a later partition obeys the save marks (replay_marks()). Two nodes must not be merged
// in these cases:
//   - Only one node is marked, and backward reads only the unmarked node. Without the merge, the
//     mark has no effect. After the merge, the mark would save the merged value.
//   - One node has a recompute tag, and the value of the second node is saved. If the merged node
//     keeps the tag, its value would not be saved.
//   - Both nodes are marked, but only one of the two marks lists results of its call (Mark::parts).
//     A mark without a list covers the whole call.
//
// Graphs without marks are not checked. Graphs without backward are checked only for the last case.
class MergedSaves {
 public:
  // `facts` describes the graph before the pass changes it. O(nodes + edges) if the graph has
  // marks, otherwise O(1).
  explicit MergedSaves(Facts& facts);

  // A merge replaces the node `gone` by the equal node `kept`. This enum states the effect on the
  // recompute tag of `gone`:
  // - kMerged: The tag is merged into the tag of `kept`, as Replacer::merge() does.
  // - kDropped: The tag is dropped, as Replacer::replace() does.
  enum class Tags : bool { kMerged, kDropped };

  // Whether the merge of the two nodes is allowed. If at least one of the two values is saved
  // without the merge, the merged value must be saved. If neither value is saved without the merge,
  // the merged value must not be saved. If the nodes are calls with several results, this rule also
  // applies to each pair of getitems with the same index.
  // O(users of such calls).
  bool are_kept(NodeId gone, NodeId kept, Tags tags) const;

  // Records that `kept` replaces `gone`. The complexity is that of are_kept().
  void merge(NodeId gone, NodeId kept, Tags tags);

 private:
  struct Fate {
    bool is_marked = false;
    bool is_read = false;
    bool is_recomputed = false;  // whether the node's own tag recomputes the node
    bool is_saved() const { return is_marked && is_read && !is_recomputed; }
  };
  Fate merged(NodeId gone, NodeId kept, Tags tags) const;
  bool is_kept(NodeId gone, NodeId kept, Tags tags) const;

  const Graph& graph_;
  bool has_marks_;
  bool has_fates_ = false;  // whether some node is marked and some node is backward
  IdMap<NodeId, Fate> fates_;
};

}  // namespace fxopt
