#pragma once

#include "ir/graph/graph.h"
#include "ir/step/facts.h"
#include "ir/step/tag_rules.h"

// The values that a second partition saves by the marks of a first (ir/step/marks.h), and the
// merges of nodes that would change them.

namespace fxopt {

// The fate of each forward value of a joint graph: a marked value is saved, others are recomputed.
// Exceptions: symbols; MUST_SAVE of the author; recompute tags that win over the mark, see
// decide_tags(); the base of a saved view, whose memory is kept anyway (rule inherited).
struct Replay {
  TagDecisions decisions;
  IdMap<NodeId, bool> is_read;  // by backward, or by a node that backward recomputes
};

// O(nodes + edges).
Replay replay_marks(const Graph& graph, Facts& facts, PreferRecompute prefer);

// Answers, for a pass that removes equal nodes, whether a second partition still saves the same
// values. Two nodes are not merged if
//   - only one is marked and only the other is read by backward, so that neither is saved
//   - the tag of one recomputes a value that the other saves
//   - one mark lists results of its call and the other covers the whole call
//
// Graphs without marks are not checked, and graphs without backward only for the last condition.
class MergedSaves {
 public:
  // `facts` describe the graph before the pass changes it. O(nodes + edges) if the graph has marks,
  // else O(1).
  explicit MergedSaves(Facts& facts);

  // How `kept` gets the recompute tag of `gone`: as by Replacer::merge() or by Replacer::replace().
  enum class Tags : bool { kMerged, kDropped };

  // Whether the merged value is saved exactly if one of the two is, and likewise each getitem of
  // calls with several results. O(users of such calls).
  bool are_kept(NodeId gone, NodeId kept, Tags tags) const;

  // Records that `kept` replaces `gone`. The same complexity.
  void merge(NodeId gone, NodeId kept, Tags tags);

 private:
  struct Fate {
    bool is_marked = false;
    bool is_read = false;
    bool is_recomputed = false;  // by its own tag
    bool is_saved() const { return is_marked && is_read && !is_recomputed; }
  };
  Fate merged(NodeId gone, NodeId kept, Tags tags) const;
  bool is_kept(NodeId gone, NodeId kept, Tags tags) const;

  const Graph& graph_;
  bool has_marks_;
  bool has_fates_ = false;  // some node is marked, and some is backward
  IdMap<NodeId, Fate> fates_;
};

}  // namespace fxopt
