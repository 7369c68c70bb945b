#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/step/phases.h"

// Marks record the values that the partition of an earlier compilation saved. A second compilation
// of the same step then saves the same values. Marks are stored in a node's metadata `custom`,
// which a trace by PyTorch keeps. These keys are from autoparallel:
//
//   ap_must_save                   Marks the node. Any value except False and None is a mark.
//   ap_must_save_getitem_indices   Only on a call with several results: the indices of the saved
//                                  results. A trace drops the metadata of a getitem, or replaces it
//                                  by the metadata of the call.
//
// fxopt adds these keys:
//
//   ap_must_save_as                The name of the value in the first partition. A trace that
//                                  decomposes a node copies the node's metadata to every new node.
//                                  The last of these nodes is the marked value.
//   ap_must_save_of                The number of marked values in the graph.
//   ap_must_save_also              The names of marked values that passes merged into this value.
//                                  For result 1 of a call, "NAME@1" adds a name, and "NAME=1"
//                                  replaces the name that follows from the call.
//
// Marks on backward nodes are ignored, because tracers copy a forward node's metadata to its
// backward nodes.

namespace fxopt {

// Whether the module contains the key ap_must_save. O(1).
bool may_hold_marks(const Module& module);
// Whether a call of the graph carries a mark. O(nodes) if the module may contain marks, otherwise
// O(1).
bool holds_marks(const Graph& graph);

// The mark stored on a node.
struct Mark {
  bool exists = false;
  bool has_parts = false;
  std::vector<int64_t> parts;  // sorted indices
  StringId name;               // invalid if not recorded
  std::vector<StringId> also;
  int64_t total = 0;  // 0 if not recorded
  bool operator==(const Mark&) const = default;
};
// Returns the mark of a node. O(size of `custom`).
Mark read_mark(const Graph& graph, NodeId node);

// Returns the node that stores the mark of a value. For a getitem, this is the call whose result
// the getitem reads. If only the getitem is marked, this is the getitem. For all other values, this
// is `node`. O(size of `custom`).
NodeId mark_carrier(const Graph& graph, NodeId node);

// Whether the node is a marked value. This is true if the node has its own mark, or if the mark of
// the node's call lists the node as a result. A call whose mark lists indices is not a marked
// value. O(size of `custom`).
bool is_marked_saved(const Graph& graph, NodeId node);

// Returns the names of the marked value in the first partition, such as "mm" or "topk[1]". The
// value's own name comes first, followed by the names merged into it. If no own name is recorded,
// the node's name is used. The list is empty if the node is not marked. O(size of `custom`).
std::vector<std::string> marked_names(const Graph& graph, NodeId node);

// The marked values of a graph.
struct MarkMap {
  // Marked forward values. If several nodes have the same name, only the last node is included.
  IdMap<NodeId, bool> is_saved;
  std::vector<NodeId> values;  // the nodes of `is_saved`, in schedule order
  int64_t num_names = 0;       // number of names of these values, including merged names
  // Number of marked values that are missing in the graph, according to the totals and indices in
  // the marks.
  int64_t num_lost = 0;
  // The first call with a marked result that no getitem reads. Invalid if no such call exists.
  NodeId without_getitem;
  // A backward node whose mark has a name that no forward node carries. Invalid if no such node
  // exists.
  NodeId in_backward_alone;
};
// Finds the marked values of a graph. O(nodes + sizes of `custom`). O(1) if the module contains no
// mark.
MarkMap find_marks(const Graph& graph, const PhaseMap& phases);

// Marks each saved call. If a call has several results, marks only the saved results. Skips inputs,
// attributes and symbols. Turns a recompute tag on a saved value into MUST_SAVE. Returns the number
// of nodes whose mark is new or changed. O(saved).
size_t mark_saved(Graph& graph, std::span<const NodeId> saved);

// Adds these names to the mark of the value `node`, which is a call. `total` has the meaning of
// Mark::total. O(size of `custom`).
void add_mark(Graph& graph, NodeId node, std::span<const std::string> names, int64_t total);

// Sets the key ap_must_save_of in the node's mark. O(size of `custom`).
void set_mark_total(Graph& graph, NodeId node, int64_t total);

// Removes the mark of the value. If the value is a getitem, removes its index from the mark of the
// call. O(size of `custom`).
void drop_mark(Graph& graph, NodeId node);

// Removes the mark from the node's own metadata only. This is for copies of marked nodes.
// O(size of `custom`).
void strip_mark(Graph& graph, NodeId node);

// Adds the mark of the call `gone`, including the indices, to the mark of the equal call `kept`.
// O(size of `custom`).
void merge_marks(Graph& graph, NodeId kept, NodeId gone);

}  // namespace fxopt
