#pragma once

#include "ir/graph/graph.h"
#include "ir/step/facts.h"
#include "ir/step/tag_rules.h"

// What a second partition saves by the marks of a first (ir/step/marks.h), and nodes whose merging would change that.

namespace fxopt {

// What each forward value of a joint graph becomes: a marked value is saved, others are recomputed.
// Exceptions: symbols; MUST_SAVE of the author; recompute tags that win over the mark, see
// decide_tags(); the base of a saved view, whose memory is kept anyway (rule inherited).
struct Replay {
  TagDecisions decisions;
  IdMap<NodeId, bool> is_read;  // by backward, or by a node that is recomputed in it
};

// O(nodes + edges).
Replay replay_marks(const Graph& graph, Facts& facts, PreferRecompute prefer);

// Tells a pass that removes equal nodes whether the values that a second partition saves stay the same. Two nodes stay apart
// where only one is marked and only the other is read by backward, so that neither is saved; where the tag of one recomputes a
// value that the other saves; and where one mark lists results of its call and the other is for the whole call. Asks nothing of
// graphs without marks, and only the last of those that hold no backward.
class MergedSaves {
 public:
  // `facts` are those of the graph before the pass changes it. O(nodes + edges) where the graph has marks, else O(1).
  explicit MergedSaves(Facts& facts);

  // How `kept` gets the recompute tag of `gone`: as by Replacer::merge() or as by Replacer::replace().
  enum class Tags : bool { kMerged, kDropped };

  // Whether the value that stands for the two is saved exactly if one of the two is; the same of the parts of calls with
  // several results. O(users of calls with parts).
  bool are_kept(NodeId gone, NodeId kept, Tags tags) const;

  // `kept` stands for `gone` from here on. Costs as above.
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
  bool has_fates_ = false;  // where some node is marked, and some is backward
  IdMap<NodeId, Fate> fates_;
};

}  // namespace fxopt
