#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/hash_table.h"
#include "ir/graph/graph.h"
#include "ir/step/phases.h"

namespace fxopt {

// Erases or replaces nodes, and keeps their tags and their save marks (the key `ap_must_save`,
// ir/step/marks.h). Passes remove nodes only through this class:
//
//   Replacer replacer(graph, facts.phases(), "cse");
//   for (const Merge& merge : plan) replacer.merge(merge.gone, merge.kept);
//   replacer.finish();
//
// If a removed node has a replacement, its tag and save mark move to the replacement. Otherwise
// they move to the module's ledger of erased nodes (Module::erased). The ledger also records a
// verdict for each: whether the tag or mark was carried out. Save marks on backward nodes are
// ignored.
class Replacer {
 public:
  // `phases` are the phases of the graph before the pass changes it. Keeps references to the
  // arguments.
  Replacer(Graph& graph, const PhaseMap& phases, std::string_view pass);

  // Replaces `gone` by `kept`, an earlier node that computes the same value. `kept` gets
  // - the uses of `gone`,
  // - an origin that names `gone`,
  // - the origins of `gone`, except those of recomputed copies,
  // - the save mark of `gone`, and
  // - the tag of `gone`, by stronger_tag().
  //
  // A tag from the author of the graph wins over a tag from a policy pass such as `sac`. A save
  // mark wins over the recompute tag of a policy pass. O(uses of `gone` + origins).
  void merge(NodeId gone, NodeId kept);

  // Like merge(), but for a `kept` that aliases `gone`, such as the base of an identity view. The
  // save mark and a save tag move to `kept`. A recompute tag does not move, because it applies only
  // to `gone`.
  void replace(NodeId gone, NodeId kept);

  // Like replace(), but the pass has already moved the uses of `gone`. The save mark moves to
  // `value`. Control dependencies on `gone` move to `by`. The tag moves to the ledger of erased
  // nodes. Amortised O(1).
  void stand_in(NodeId gone, NodeId value, NodeId by);

  // Moves the save mark and a save tag of `gone` to `kept`. Call give() after the consumers of
  // `gone` have been moved to `kept`. O(size of the node's meta["custom"]).
  void give(NodeId gone, NodeId kept);

  // Erases a node without users. Its tag and save mark move to the ledger of erased nodes. If they
  // have no verdict yet, they get the verdict `moot`: backward does not need the value.
  // O(arguments).
  void erase_unread(NodeId node);

  // Records that `kept` takes the place of the erased node `gone`. finish() then moves control
  // dependencies on `gone` to `kept`.
  void hand_over(NodeId gone, NodeId kept) {
    replaced_[gone] = kept;
    any_ = true;
  }

  // Moves each control dependency on a replaced node to the replacement. Each save mark records the
  // total number of marked values in the graph, and finish() updates this total. Call finish()
  // after all other functions, and before the pass reads control dependencies. Takes O(nodes), or
  // O(1) if nothing changed.
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
  // A save mark that is stored on a getitem.
  struct OwnMark {
    NodeId node;
    std::vector<std::string> names;
    int64_t total = 0;
  };
  std::vector<OwnMark> own_marks_of_parts(NodeId gone, NodeId kept);
  const std::vector<NodeId>& carriers_of(StringId name);
  void drop_shadow(NodeId kept);
  void forget_shadows(NodeId node);
  void record_mark(NodeId node, const std::vector<std::string>& names, const TagVerdict& verdict);
  void lower_totals();
  void put_in_place(NodeId gone, NodeId kept, const std::vector<OwnMark>& parts);

  Graph& graph_;
  const PhaseMap& phases_;
  std::string_view pass_;
  IdMap<NodeId, NodeId> replaced_{graph_.num_ids()};
  IdMap<NodeId, bool> is_overruled_;
  bool has_marks_;  // whether any node may have a save mark
  bool any_ = false;
  int64_t num_unmarked_ = 0;  // number of save marks moved from nodes to Module::erased
  // For each name in a save mark, the forward nodes that have a mark of this name, in schedule
  // order. The map is filled when the first marked node is removed.
  HashMap<StringId, std::vector<NodeId>> named_;
  bool is_indexed_ = false;
};

// Whether replacing `view` by `base` would lose the decision to save `view`, because the recompute
// tag of `base` would win. O(size of the node's meta["custom"]).
bool are_decided_apart(const Graph& graph, const PhaseMap& phases, NodeId view, NodeId base);

// Adds the tag of `node`, and the tag's present verdict, to the ledger of erased nodes
// (Module::erased). Call record_tag() before `pass` erases the node. Does nothing for an untagged
// node. Amortised O(1).
void record_tag(Graph& graph, NodeId node, std::string_view pass);

// Copies the tag and verdict of `from` to `node`, which replaces several nodes. O(1).
void copy_tag(Graph& graph, NodeId node, NodeId from);

}  // namespace fxopt
