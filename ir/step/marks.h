#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/step/phases.h"

// Marks record the values that a first partition saved, so that a second compilation of the same
// step saves the same values. They are stored in a node's metadata `custom`, which a trace by
// PyTorch keeps. The keys of autoparallel:
//
//   ap_must_save                   any value but False and None marks the node
//   ap_must_save_getitem_indices   of a call with several results: the indices of the saved ones.
//                                  A trace drops a getitem's metadata, or replaces it by the call's
// and of fxopt:
//   ap_must_save_as                the name of the value in the first partition. A trace that
//                                  decomposes a node copies its metadata to every new node: the
//                                  last one is the value
//   ap_must_save_of                the number of marked values in the graph
//   ap_must_save_also              the names of marked values that passes merged into this one. For
//                                  result 1 of a call: "NAME@1" adds a name, "NAME=1" replaces the
//                                  name that follows from the call
//
// Marks on backward nodes are ignored: tracers copy a forward node's metadata to its backward
// nodes.

namespace fxopt {

// Whether the module contains the key ap_must_save. O(1).
bool may_hold_marks(const Module& module);
// Whether a call of the graph carries a mark. O(nodes) where the module may hold marks.
bool holds_marks(const Graph& graph);

// The mark stored on a node.
struct Mark {
  bool exists = false;
  bool has_parts = false;
  std::vector<int64_t> parts;  // sorted
  StringId name;               // invalid: not recorded
  std::vector<StringId> also;
  int64_t total = 0;  // 0: not recorded
  bool operator==(const Mark&) const = default;
};
// O(size of `custom`).
Mark read_mark(const Graph& graph, NodeId node);

// The node that stores the mark of a value: the call of a getitem, unless only the getitem itself
// is marked; else the node. O(size of `custom`).
NodeId mark_carrier(const Graph& graph, NodeId node);

// Whether the node is a marked value, by its own mark or as a result that the mark of its call
// lists. A call whose mark lists indices is no marked value itself. O(size of `custom`).
bool is_marked_saved(const Graph& graph, NodeId node);

// The names of the marked value in the first partition, such as "mm" or "topk[1]": its own (the
// node's, if none is recorded), then the names merged into it. Empty if unmarked.
// O(size of `custom`).
std::vector<std::string> marked_names(const Graph& graph, NodeId node);

// The marked values of a graph.
struct MarkMap {
  IdMap<NodeId, bool> is_saved;  // marked forward values; of several nodes with one name the last
  std::vector<NodeId> values;    // those of `is_saved`, in schedule order
  int64_t num_names = 0;         // names of these values, merged ones included
  int64_t num_lost = 0;          // marked values missing from the graph, as far as totals and indices show
  NodeId without_getitem;        // the first call with a marked result that no getitem reads, if any
  NodeId in_backward_alone;      // a backward node with a mark whose name no forward node carries, if any
};
// O(nodes + sizes of `custom`), less where the module holds no mark.
MarkMap find_marks(const Graph& graph, const PhaseMap& phases);

// Marks each saved call, or the saved results of a call with several. Skips inputs, attributes and
// symbols. Turns a recompute tag on a saved value into MUST_SAVE. Returns the number of nodes whose
// mark is new or changed. O(saved).
size_t mark_saved(Graph& graph, std::span<const NodeId> saved);

// Adds these names to the mark of the value `node`, a call. `total` as in Mark.
// O(size of `custom`).
void add_mark(Graph& graph, NodeId node, std::span<const std::string> names, int64_t total);

// Sets the key ap_must_save_of in the node's mark. O(size of `custom`).
void set_mark_total(Graph& graph, NodeId node, int64_t total);

// Removes the value's mark. For a getitem, removes its index from the mark of its call.
// O(size of `custom`).
void drop_mark(Graph& graph, NodeId node);

// Removes the mark from the node's own metadata only: for copies. O(size of `custom`).
void strip_mark(Graph& graph, NodeId node);

// Adds the marks of call `gone`, indices included, to the equal call `kept`. O(size of `custom`).
void merge_marks(Graph& graph, NodeId kept, NodeId gone);

}  // namespace fxopt
