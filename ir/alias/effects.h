#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/ops/op.h"

// Facts about one call that depend on the call's arguments. EffectMap combines all effects of a
// call.

namespace fxopt {

// True if this call draws random numbers. A random op whose dropout probability is the constant 0
// draws nothing. Fused attention always draws a seed, even if dropout_p is 0.
bool is_random_call(const Graph& graph, NodeId node);

// True for a random draw whose offset in an RngSlot is recorded. The draw yields the same numbers
// at any place of the schedule. O(1).
bool is_recorded_draw(const Graph& graph, NodeId node);

// Returns the relation of the call's result to its inputs. This is Op::view, refined for getitem:
// - A getitem of a tuple, list or dict is a projection.
// - A getitem of a tensor by integers, slices, None and Ellipsis is a view.
// - A getitem of a tensor by anything else (a tensor, a mask, a list) is kMaybeView. The result is
//   a view if the index is a tensor that holds one integer, and a copy otherwise.
// O(1), or O(elements of the index).
ViewKind view_of_call(const Graph& graph, NodeId node);

// True for an index that makes a view of a tensor: integers, slices, None, Ellipsis, and tuples of
// these. A boolean or a list makes a copy. `is_integer` decides whether a node represents an
// integer. O(elements of the index).
bool is_basic_index(const Graph& graph, const Arg& index, const std::function<bool(NodeId node)>& is_integer);

// Searches the users of the nodes in `from`, and the users of views of these nodes. Returns the
// first user for which `is_it` returns true, or an invalid id if no such user exists. Calls `is_it`
// once for each user. O(users log users).
NodeId find_reader(const Graph& graph, std::vector<NodeId> from, const std::function<bool(NodeId reader)>& is_it);

// Returns the tuple, list or dict from which a getitem takes an element. Returns an invalid id if
// `node` is not such a getitem. For example, returns an invalid id for a getitem of a value that is
// recorded as a tensor. Complexity: as view_of_call().
NodeId whole_of(const Graph& graph, NodeId node);

// Whether the call uses only the sizes, dtype and device of its tensors, as `ones_like` and
// `new_zeros` do. O(1).
bool reads_shape_alone(const Graph& graph, NodeId node);

// Whether the result of a call may be, or may contain, a tensor that the call takes as an argument
// (Op::hands_on). A result without a recorded value is assumed to be a list. O(1).
bool may_hand_on(const Graph& graph, NodeId node);

// Whether the call returns argument 0 or a view of argument 0 whenever this is possible. The alias
// annotation of the schema decides. False if the call requests a copy. O(arguments).
bool shares_where_it_can(const Graph& graph, NodeId node);

// Whether the call has several results and no recorded value. StorageMap then treats all results as
// one tensor. O(1).
bool is_unrecorded_tuple(const Graph& graph, NodeId node);

// Collects the positions of arguments whose tensors may have other sizes, strides, offset or
// storage after the call. These are:
// - argument 0 of `t_` and similar ops;
// - `out` of an out variant. `out` is not collected if the recorded values show that its metadata
//   is unchanged;
// - arguments that an op outside the built-in table writes, according to the op's schema in the
//   graph file. The argument is not collected if the op returns the same tensor and if the file
//   records the same metadata for it.
// A call with unknown writes (EffectMap) may change all its tensors. This function does not cover
// such calls. O(writes * rank).
void collect_metadata_changes(const Graph& graph, NodeId node, std::vector<uint8_t>& positions);

// True if the call writes only the metadata of a tensor and no bytes (`t_`, `set_`, `detach_`). An
// op that may enlarge the tensor's storage (`resize_`) counts as writing bytes. O(1).
bool writes_only_metadata(const Graph& graph, NodeId node);

// True if the call really writes the arguments that Op::writes lists. For example, batch norm
// updates its running statistics only in training.
bool is_writing_call(const Graph& graph, NodeId node);

// Whether the call may depend on properties of its tensors beyond elements, sizes and strides.
// Examples of these properties are the storage offset and other bytes of the storage. True for
// operators outside the built-in table, because they may inspect anything. False for the output.
// O(1).
bool sees_storage(const Graph& graph, NodeId node);

// Whether the op creates a view whose strides and offset are arguments of the call (`as_strided`).
// The operator's name decides. O(length of the name).
bool sets_strides(const Op& op);
// Whether the call may return a view with larger elements than its input. For example,
// `view(dtype)` may view two bf16 elements as one fp32 element. PyTorch requires that the input's
// storage offset in bytes is a multiple of the larger element size. O(1).
bool needs_aligned_place(const Graph& graph, NodeId node);

}  // namespace fxopt
