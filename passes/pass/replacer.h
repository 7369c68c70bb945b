#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/hash_table.h"
#include "ir/graph/graph.h"
#include "ir/step/phases.h"

namespace fxopt {

// Takes nodes out of a graph, alone or with a node that stands for them, and keeps what was decided about them. A pass removes nodes
// through this class and in no other way:
//
//   Replacer replacer(graph, facts.phases(), "cse");
//   for (const Merge& merge : plan) replacer.merge(merge.gone, merge.kept);
//   replacer.finish();
//
// Every decision about a node that goes, its tag and its mark (ir/step/marks.h), is afterwards on the node that stands for it, or in the
// module's ledger with its verdict, if it has one. Marks of backward nodes are no decisions.
class Replacer {
 public:
  // `phases`: as the graph was before the pass changed it. Kept by reference.
  Replacer(Graph& graph, const PhaseMap& phases, std::string_view pass);

  // `kept` computes what `gone` computes. Uses of `gone` read `kept`, `gone` is erased. `kept`, which may be any node before it, records the
  // origin and the origins `gone` had (of recomputed copies none: what one was copied from says nothing about the other). It gets the mark,
  // and the tag by merge_tags(); but a tag of the file's author wins over one that a policy wrote, and a policy's recompute tag gives way to
  // a mark. O(uses of `gone` + origins).
  void merge(NodeId gone, NodeId kept);

  // The same where `kept` has the memory and the value of `gone`, such as the base of an identity view: what asks for `gone` to be saved
  // (mark, save tag) asks it of `kept`. What asks for it to be recomputed does not: `gone` alone was to be made again.
  void replace(NodeId gone, NodeId kept);

  // The same after the pass has moved the uses of `gone` itself; control dependencies are on `by` then. O(1) amortised.
  void stand_in(NodeId gone, NodeId value, NodeId by);

  // Gives what asks for `gone` to be saved to `kept`, which the former readers of `gone` read. O(size of `custom`).
  void give(NodeId gone, NodeId kept);

  // Erases a node that no node reads. A tag or mark on it without a verdict is moot: backward reads nothing of it.
  // O(arguments).
  void erase_unread(NodeId node);

  // A control dependency on `gone`, which is erased, becomes one on `kept`.
  void hand_over(NodeId gone, NodeId kept) {
    replaced_[gone] = kept;
    any_ = true;
  }

  // Moves control dependencies on nodes that went to the nodes that stand for them, and makes marks say how many there are. At the end, and
  // before the pass asks for control dependencies. O(nodes), nothing when nothing was replaced or unmarked.
  void finish();

 private:
  bool is_backward(NodeId node) const;
  bool is_policy_recompute(NodeId node) const;
  void merge_tags_of(NodeId gone, NodeId kept);
  void yield_to_mark(NodeId kept);
  void give_save_tag(NodeId gone, NodeId kept);
  void give_mark(NodeId gone, NodeId kept);
  bool is_taken_twice(NodeId node, NodeId whole) const;
  std::vector<std::string> effective_names(NodeId node);
  void forget_shadows(NodeId node);
  void record_mark(NodeId node, const std::vector<std::string>& names, const TagVerdict& verdict);
  void lower_totals();
  void put_in_place(NodeId gone, NodeId kept);

  Graph& graph_;
  const PhaseMap& phases_;
  std::string_view pass_;
  IdMap<NodeId, NodeId> replaced_;
  bool has_marks_;  // whether any node may carry a mark
  bool any_ = false;
  int64_t num_unmarked_ = 0;  // marked values that are in the ledger now
  // Forward nodes by the name in their mark, in schedule order; filled when the first marked node goes.
  HashMap<StringId, std::vector<NodeId>> named_;
  bool is_indexed_ = false;
};

// Whether `base`, in the place of a view of it, would lose what was decided: the view is to be saved, and `base` has a recompute tag that
// outweighs that. O(size of `custom`).
bool are_decided_apart(const Graph& graph, const PhaseMap& phases, NodeId view, NodeId base);

// Enters the tag of a node that `pass` is about to erase into the module's ledger, with its verdict so far. Does nothing for an untagged
// node. O(1) amortised.
void record_tag(Graph& graph, NodeId node, std::string_view pass);

// Gives a new node, which stands for `from` together with others, the tag of `from` with its verdict. O(1).
void copy_tag(Graph& graph, NodeId node, NodeId from);

}  // namespace fxopt
