#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/step/phases.h"

// A training step may be compiled twice, and each compilation partitions the step into forward and
// backward. A save mark ("mark" in this folder) records that the first partition saved a value for
// backward. The second partition then saves the value again. Marks are stored in the metadata entry
// `custom` of a node, which PyTorch keeps when it traces the graph. The entry has these keys, which
// are from autoparallel:
//
//   ap_must_save                   The save mark. Any value except False and None is a mark.
//   ap_must_save_getitem_indices   Only on a call with several results: the indices of the saved
//                                  results. A mark on the getitem itself would be lost, because a
//                                  trace drops the metadata of a getitem, or replaces it by the
//                                  metadata of the call.
//
// fxopt adds these keys:
//
//   ap_must_save_as                The name of the value in the first partition. A trace that
//                                  decomposes a node copies the node's metadata to every new node.
//                                  Only the last of these nodes is then the marked value.
//   ap_must_save_of                The number of values that the first partition marked, minus the
//                                  number of marks that passes removed.
//   ap_must_save_also              The names of marked values that passes merged into this value.
//                                  The name of a single result of a call ends in the index of the
//                                  result. For example, a call has the name "topk", and its result
//                                  1 has the default name "topk[1]":
//                                  - The entry "mul@1" gives result 1 the additional name "mul".
//                                  - The entry "mul=1" replaces the name "topk[1]" by "mul".
//
// Marks on backward nodes are ignored, because tracers copy a forward node's metadata to its
// backward nodes.

namespace fxopt {

// Whether the module contains the key ap_must_save. O(1).
bool may_hold_marks(const Module& module);
// Whether any call in the graph has a save mark. O(nodes) if the module may contain marks,
// otherwise O(1).
bool holds_marks(const Graph& graph);

// The save mark of a node, read from the keys above.
struct Mark {
  bool exists = false;
  bool has_parts = false;      // whether the mark lists the indices of saved results
  std::vector<int64_t> parts;  // sorted indices of saved results
  // The name that the value had when it was marked. Invalid if not recorded.
  StringId name;
  std::vector<StringId> also;  // the names in ap_must_save_also
  // The number of values that were marked at the same time, including this value, or 0 if not
  // recorded.
  int64_t total = 0;
  bool operator==(const Mark&) const = default;
};
// Returns the mark of a node. O(size of the metadata entry `custom`).
Mark read_mark(const Graph& graph, NodeId node);

// Returns the node that stores the mark of a value. If the value is not marked, returns the node
// that would store a new mark:
// - For a getitem that takes one of several results of a call by an integer index, this node is
//   normally the call. Exception: if only the getitem's own mark covers the element, and not the
//   mark of the call, this node is the getitem.
// - For all other values, this node is `node`.
// O(size of the metadata entry `custom`).
NodeId mark_carrier(const Graph& graph, NodeId node);

// Whether the node is a marked value. A call that is not a getitem is a marked value if it has a
// mark that lists no indices. A getitem is a marked value in each of these cases:
// - The call that the getitem reads has a mark that lists the index of the getitem.
// - The call that the getitem reads has a mark that lists no indices.
// - The getitem itself has a mark that lists its index or lists no indices.
// O(size of the metadata entry `custom`).
bool is_marked_saved(const Graph& graph, NodeId node);

// Returns the names that the marked value had when it was marked, such as "mm" or "topk[1]". The
// value's own name comes first, followed by the names of values that were merged into this value.
// If no own name is recorded, the node's name is used. The list is empty if the node is not marked.
// O(size of the metadata entry `custom`).
std::vector<std::string> marked_names(const Graph& graph, NodeId node);

// The marked values of a graph.
struct MarkMap {
  // Marked forward values. If the marks of several nodes record the same Mark::name, only the last
  // of these nodes is included. For getitems, all marked nodes are included.
  IdMap<NodeId, bool> is_saved;
  std::vector<NodeId> values;  // the nodes of `is_saved`, in schedule order
  int64_t num_names = 0;       // number of names of the marked values, including the names of values that were merged
                               // into them
  // Number of marked values that are missing in the graph. This is the larger of two numbers:
  // - the largest Mark::total of all marked forward values, minus `num_names`
  // - the number of call results that no getitem reads although a mark contains their indices
  //   (Mark::parts)
  int64_t num_lost = 0;
  // The first call with a marked result that no getitem reads. Invalid if no such call exists.
  NodeId without_getitem;
  // The first backward call whose mark has a name (Mark::name) that occurs in none of these places:
  // - the marks of forward values (Mark::name, Mark::also)
  // - the records of erased nodes that had a mark (ErasedNode::is_mark)
  // Invalid if no such call exists.
  NodeId in_backward_alone;
};
// Finds the marked values of a graph. O(nodes + sizes of their metadata entries `custom`). O(1) if
// the module contains no mark.
MarkMap find_marks(const Graph& graph, const PhaseMap& phases);

// Writes save marks for the values `saved`. For a getitem in `saved`, writes the mark on the call
// that the getitem reads, and adds the index of the getitem to this mark (Mark::parts). The index
// is not added if the call already has a mark that lists no indices, because this mark covers all
// results. Skips inputs, attributes, symbols and scalars. Returns the number of nodes whose mark is
// new or changed. O(saved).
size_t mark_saved(Graph& graph, std::span<const NodeId> saved);

// Adds `names` to the save mark of the call `node`. Creates the mark if the call has none. Raises
// Mark::total to `total`. O(size of the metadata entry `custom`).
void add_mark(Graph& graph, NodeId node, std::span<const std::string> names, int64_t total);

// Sets the key ap_must_save_of in the node's mark. O(size of the metadata entry `custom`).
void set_mark_total(Graph& graph, NodeId node, int64_t total);

// Removes the save mark of the value `node`. For a getitem, removes the getitem's index from the
// mark of its call. O(size of the metadata entry `custom`).
void drop_mark(Graph& graph, NodeId node);

// Removes the save mark from the node's own metadata only. Used for copies of marked nodes.
// O(size of the metadata entry `custom`).
void strip_mark(Graph& graph, NodeId node);

// Adds the mark of the call `gone`, including the indices, to the mark of the equal call `kept`.
// O(size of the metadata entry `custom`).
void merge_marks(Graph& graph, NodeId kept, NodeId gone);

}  // namespace fxopt
