#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/hash_table.h"
#include "ir/graph/graph.h"
#include "ir/step/phases.h"

// Marks on the values that a first partition saved, by which a second compilation of the same step saves the same. A trace keeps a
// node's metadata `custom` and no other metadata, so marks are stored there, under the keys of autoparallel:
//
//   ap_must_save                   True, or anything but False and None
//   ap_must_save_getitem_indices   of a call with several results: those that are saved. Getitems lose their metadata in a trace,
//                                  or get the call's
// and under three of ours:
//   ap_must_save_as                the name of the value in the first partition. A trace that decomposes a node gives its metadata to
//                                  every node of the decomposition: the last one is the value
//   ap_must_save_of                how many values are marked
//   ap_must_save_also              names of further marked values that passes merged into this one; of a call with parts "NAME@1" for
//                                  one that part 1 stands for besides, "NAME=1" where that is all that part 1 stands for
//
// A mark on a backward node means nothing: tracers copy metadata of forward nodes to the backward nodes that belong to them.

namespace fxopt {

// Whether any node of the module may carry a mark: the key occurs somewhere. O(1).
bool may_hold_marks(const Module& module);
// Whether a call of the graph carries a mark. O(nodes) where the module may hold marks.
bool holds_marks(const Graph& graph);

// What stands on the node itself.
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

// Whether the node is a marked value: itself, or as a part that the mark of its call names. A marked call with several results is
// none where the mark names parts. O(size of `custom`).
bool is_marked_saved(const Graph& graph, NodeId node);

// The names of the marked value in the first partition, "mm" or "topk[1]": its own, then those of values merged into it. A value without a
// recorded name has that of its node. Empty: it is not marked. O(size of `custom`).
std::vector<std::string> marked_names(const Graph& graph, NodeId node);

// The marked values of a graph.
struct MarkMap {
  IdMap<NodeId, bool> is_saved;    // forward values; of several nodes with one name the last
  IdMap<NodeId, NodeId> carriers;  // of these, the node whose metadata holds the mark
  std::vector<NodeId> values;      // of `is_saved`, in schedule order
  int64_t num_names = 0;           // of these values, counting each value that was merged
  int64_t num_lost = 0;  // values that the first partition marked and nothing here is, where the marks or parts show it
  NodeId without_part;   // the first call with a marked part that no node takes; invalid: there is none
  NodeId
      in_backward_alone;  // a backward node with the name of a value that no forward node has; invalid: there is none
};
// O(nodes + sizes of `custom`), less where the module holds no mark.
MarkMap find_marks(const Graph& graph, const PhaseMap& phases);

// Marks calls, those with several results by the getitems among `saved`; inputs, attributes and symbols are passed over. A tag that
// asks for recompute, against which the value is saved, becomes MUST_SAVE. Returns how many nodes were not marked so before.
// O(saved).
size_t mark_saved(Graph& graph, std::span<const NodeId> saved);

// Marks the value `node`, a call, under these names besides those that it has. `total` as in Mark. O(size of `custom`).
void add_mark(Graph& graph, NodeId node, std::span<const std::string> names, int64_t total);

// Makes the mark on the node say that this many values are marked. O(size of `custom`).
void set_mark_total(Graph& graph, NodeId node, int64_t total);

// Takes the mark from the value: its own, and where it is a part its place in the mark of its call. O(size of `custom`).
void drop_mark(Graph& graph, NodeId node);

// Takes the mark out of the node's own metadata, whatever it is a part of: of a copy. O(size of `custom`).
void strip_mark(Graph& graph, NodeId node);

// Gives the marks on call `gone`, which may name parts, to the call `kept` that computes the same. O(size of `custom`).
void merge_marks(Graph& graph, NodeId kept, NodeId gone);

}  // namespace fxopt
