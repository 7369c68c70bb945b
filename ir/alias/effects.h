#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/ops/op.h"

// What the arguments of one call say about it. Its effects as a whole: EffectMap.

namespace fxopt {

// True when this call draws random numbers: a random op, unless it is a dropout-like one whose probability is
// statically 0 (fused attention is seeded whatever its dropout_p).
bool is_random_call(const Graph& graph, NodeId node);

// True for a draw whose place in a slot is recorded: it gives the same wherever it stands. O(1).
bool is_recorded_draw(const Graph& graph, NodeId node);

// What the call's result is to its inputs: Op::view, made precise for getitem. That is a projection of a tuple, list or
// dict; of a tensor a view by integers, slices, None and Ellipsis, and by anything else (a tensor, a mask, a list) a
// copy or, where the index is one integer in a tensor, a view. O(1), or O(elements of the index).
ViewKind view_of_call(const Graph& graph, NodeId node);

// The first that is met of those that read one of these nodes, or a view of one, for which `is_it` holds; invalid: there is none.
// Each reader is asked once. O(readers log readers).
NodeId find_reader(const Graph& graph, std::vector<NodeId> from, const std::function<bool(NodeId reader)>& is_it);

// The node of which this one is a part: what a getitem takes an element of. Invalid for what is no part, as a getitem of a
// tensor. O(the same).
NodeId whole_of(const Graph& graph, NodeId node);

// Whether the call reads the tensors that it is given for their sizes, dtype and device alone: `ones_like`, `new_zeros`. O(1).
bool reads_shape_alone(const Graph& graph, NodeId node);

// Whether the result may be, or hold, the very tensors that a Python function is given (Op::hands_on). Where nothing is recorded
// it may be a list. O(1).
bool may_hand_on(const Graph& graph, NodeId node);

// Whether the schema says that the result is argument 0 or a view of it wherever it can be, and the call does not ask
// for a copy. O(arguments).
bool shares_where_it_can(const Graph& graph, NodeId node);

// Whether the call has several results of which nothing is recorded: one stand-in for all of them. O(1).
bool is_unrecorded_tuple(const Graph& graph, NodeId node);

// The positions of arguments whose tensors may leave the call with other sizes, strides, offset or storage: argument 0
// of `t_` and its kin; the `out` of an out variant, unless the recorded values show that it has the result's sizes
// already; what an op described by a file writes, unless it returns that very tensor and records the same of it. Calls
// with unknown writes (EffectMap) may change all they are given, which is not repeated here. O(writes * rank).
void collect_metadata_changes(const Graph& graph, NodeId node, std::vector<uint8_t>& positions);

// True when what the call writes is no more than where a tensor is (`t_`, `set_`, `detach_`): no byte changes. An op that
// may make its storage larger (`resize_`) writes. O(1).
bool writes_only_metadata(const Graph& graph, NodeId node);

// True when the writes of Op::writes happen: batch norm updates its running statistics only in training.
bool is_writing_call(const Graph& graph, NodeId node);

// Whether the call may see more of the tensors it is given than their elements, sizes and strides: where they begin on their
// storage, what else is there, or what an operator that is not of the built-in table looks at. False for the output. O(1).
bool sees_storage(const Graph& graph, NodeId node);

// Whether the op shows memory by strides and an offset that it is given (`as_strided`). By name. O(length of the name).
bool sets_strides(const Op& op);
// Whether it is a view as wider elements, which asks that the place on the storage is a multiple of these. O(1).
bool needs_aligned_place(const Graph& graph, NodeId node);

}  // namespace fxopt
