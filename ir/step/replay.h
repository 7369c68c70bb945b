#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/graph/graph.h"

// Marks on what a partition saves, by which a second compilation of the same step saves the same. A trace keeps a node's metadata
// `custom` and nothing else of its own, so they are there, under the keys of autoparallel:
//
//   ap_must_save                   True, or anything but False and None
//   ap_must_save_getitem_indices   of a call of several parts: those that are saved. Parts lose their metadata in a trace, or get
//                                  the call's
// and two of ours, which say of the first partition
//   ap_must_save_as                what the value was called; nodes into which a trace takes one apart have its metadata all
//   ap_must_save_of                how many values it marked

namespace fxopt {

struct ReplayMark {
  bool exists = false;
  bool has_parts = false;
  std::vector<int64_t> parts;  // sorted
  StringId name;               // invalid: not said
  int64_t total = 0;           // 0: not said
  bool operator==(const ReplayMark&) const = default;
};
// What stands on the node itself. O(size of `custom`).
ReplayMark replay_mark(const Graph& graph, NodeId node);

// Whether the node is a value that the first partition saved: marked, or a part that the mark of the call which it is taken from
// names. A marked call of several parts is not, itself, where parts are named. O(size of `custom`).
bool is_marked_saved(const Graph& graph, NodeId node);

// Marks calls, those of several parts by the getitems among `saved`; inputs, attributes and symbols are passed over. A tag that
// asks for recompute, against which the value is saved, becomes MUST_SAVE. Returns how many nodes were not marked so before.
// O(saved).
size_t mark_saved(Graph& graph, std::span<const NodeId> saved);

// What stands for two nodes is saved where one was. O(size of `custom`).
void merge_replay_marks(Graph& graph, NodeId kept, NodeId gone);

}  // namespace fxopt
