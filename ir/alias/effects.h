#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/ops/op.h"

// Facts about one call that its arguments decide. EffectMap has its effects as a whole.

namespace fxopt {

// True if this call draws random numbers: a random op, unless it is dropout-like with a probability
// that is statically 0. Fused attention is seeded whatever its dropout_p.
bool is_random_call(const Graph& graph, NodeId node);

// True for a draw whose place in a slot is recorded: it yields the same numbers at any place of the
// schedule. O(1).
bool is_recorded_draw(const Graph& graph, NodeId node);

// The relation of the call's result to its inputs: Op::view, refined for getitem. A getitem of a
// tuple, list or dict is a projection. A getitem of a tensor by integers, slices, None and Ellipsis
// is a view. By anything else (a tensor, a mask, a list) it is a copy, or a view if the index is
// one integer in a tensor. O(1), or O(elements of the index).
ViewKind view_of_call(const Graph& graph, NodeId node);

// Returns the first node met for which `is_it` holds, among the users of these nodes and of their
// views; invalid if none exists. Asks about each user once. O(readers log readers).
NodeId find_reader(const Graph& graph, std::vector<NodeId> from, const std::function<bool(NodeId reader)>& is_it);

// The tuple, list or dict that a getitem takes an element of. Invalid for any other node, such as a
// getitem of a tensor. Costs as much as view_of_call().
NodeId whole_of(const Graph& graph, NodeId node);

// Whether the call reads its tensors for their sizes, dtype and device alone: `ones_like`,
// `new_zeros`. O(1).
bool reads_shape_alone(const Graph& graph, NodeId node);

// Whether the result may be, or hold, the very tensors given to a Python function (Op::hands_on). A
// result without a recorded value may be a list. O(1).
bool may_hand_on(const Graph& graph, NodeId node);

// Whether the schema says that the result is argument 0, or a view of it, whenever possible, and
// the call does not ask for a copy. O(arguments).
bool shares_where_it_can(const Graph& graph, NodeId node);

// Whether the call has several results and no recorded value, so that one stand-in represents all
// results. O(1).
bool is_unrecorded_tuple(const Graph& graph, NodeId node);

// Collects the positions of arguments whose tensors may leave the call with other sizes, strides,
// offset or storage. These are:
// - argument 0 of `t_` and its kin;
// - `out` of an out variant, unless the recorded values show that it already has the result's
//   sizes;
// - arguments written by an op that only a file describes, unless it returns that very tensor and
//   records the same metadata for it.
// Calls with unknown writes (EffectMap) may change all their tensors and are not covered here.
// O(writes * rank).
void collect_metadata_changes(const Graph& graph, NodeId node, std::vector<uint8_t>& positions);

// True if the call writes only the metadata of a tensor (`t_`, `set_`, `detach_`) and no bytes. An
// op that may enlarge its storage (`resize_`) writes bytes. O(1).
bool writes_only_metadata(const Graph& graph, NodeId node);

// True if the writes of Op::writes happen: batch norm updates its running statistics only in
// training.
bool is_writing_call(const Graph& graph, NodeId node);

// Whether the call may see more of its tensors than their elements, sizes and strides: their offset
// in the storage, other bytes of the storage, or anything that an operator outside the built-in
// table inspects. False for the output. O(1).
bool sees_storage(const Graph& graph, NodeId node);

// Whether the op views memory by strides and an offset that it is given (`as_strided`). Decided by
// name. O(length of the name).
bool sets_strides(const Op& op);
// Whether the call is a view with wider elements, which needs a storage offset that is a multiple
// of their width. O(1).
bool needs_aligned_place(const Graph& graph, NodeId node);

}  // namespace fxopt
