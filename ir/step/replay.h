#pragma once

#include "ir/graph/graph.h"
#include "ir/step/facts.h"
#include "ir/step/tag_rules.h"

// Computes the values that a second partition saves by the marks of a first partition
// (ir/step/marks.h). Finds the merges of nodes that would change these values.

namespace fxopt {

// Whether each forward value of a joint graph is saved or recomputed. A marked value is saved, and
// all other values are recomputed, with these exceptions:
// - Symbols are saved.
// - Values that the author tagged MUST_SAVE are saved. MUST_SAVE of a policy is obeyed only if the
//   value cannot be recomputed.
// - A recompute tag may win over a mark, see decide_tags().
// - The base of a saved view is saved, because its memory is kept anyway (rule `inherited`).
struct Replay {
  TagDecisions decisions;
  IdMap<NodeId, bool> is_read;  // whether backward or a recomputed node reads the value
};

// Replays the marks of the graph. `prefer` states whether PREFER_RECOMPUTE wins over a mark.
// O(nodes + edges).
Replay replay_marks(const Graph& graph, Facts& facts, PreferRecompute prefer);

// For a pass that removes equal nodes, decides whether a second partition still saves the same
// values. Two nodes must not be merged in these cases:
//   - Only one node is marked, and backward reads only the other node. Without the merge, neither
//     value is saved.
//   - The tag of one node recomputes a value that the other node saves.
//   - One mark lists results of its call, and the other mark covers the whole call.
//
// Graphs without marks are not checked. Graphs without backward are checked only for the last case.
class MergedSaves {
 public:
  // `facts` describes the graph before the pass changes it. O(nodes + edges) if the graph has
  // marks, otherwise O(1).
  explicit MergedSaves(Facts& facts);

  // Whether the recompute tag of `gone` is kept. Replacer::merge() merges this tag into the tag of
  // `kept`, and Replacer::replace() drops this tag.
  enum class Tags : bool { kMerged, kDropped };

  // Whether the merged value is saved if and only if one of the two values is saved. If the nodes
  // are calls with several results, each getitem must meet the same condition.
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
