#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/graph/graph.h"

namespace fxopt {

// True if both are known to be the same number: equal constants, or equal as polynomials.
bool same_dim(const Module& module, const Dim& a, const Dim& b);

// True if two tensors on one storage would be the same tensor: dtype, layout, sizes, strides,
// offset, device, conjugate and negative bits, subclass and placements agree. Storage ids and
// requires_grad do not count. O(rank).
bool same_metadata(const Module& module, const Tensor& a, const Tensor& b);

// The same for whole values of one graph: kinds and elements agree. An absent value agrees only
// with an absent one. O(size of the value).
bool same_metadata(const Graph& graph, ValueId a, ValueId b);

// True if both have the same number of dimensions, and these pairwise satisfy same_dim().
bool same_sizes(const Module& module, DimsId a, DimsId b);

// True for a dtype that gradients have: real floating point of more than 8 bits.
bool is_floating(DType dtype);

// True if the node produces one tensor of one element, whatever its rank.
bool has_one_element(const Graph& graph, NodeId node);

// The inputs of the graph, in order. O(nodes).
std::vector<NodeId> placeholders_of(const Graph& graph);

// The leaves of the output node's arguments in the order of Graph::outputs, including values of a
// dict but not its keys. Invalid for a leaf that is no node. Empty without an output. O(arguments).
std::vector<NodeId> output_leaves(const Graph& graph);

// The leaves of any arguments of the graph, constants included. O(arguments).
std::vector<Arg> leaves_of(const Graph& graph, ArgRange range);

// Whether an op that changes only the shape, and copies only if it must, returns its input's
// memory.
enum class ViewAnswer : uint8_t { kView, kCopy, kUnknown };

// Decides from the two recorded tensors: a view has its input's dtype, device, offset and bits, and
// the strides that its sizes have on the input's memory. Unknown if a size or stride is symbolic
// and not the input's own, if a tensor is empty, or if a property is not recorded. O(rank).
ViewAnswer compare_as_view(const Module& module, const Tensor& from, const Tensor& to);

// Whether two attributes of one module are known to name one thing: a constant or a graph. False
// for opaque objects and for attributes that are not recorded.
bool name_same_thing(const Attribute& a, const Attribute& b);

// Calls f(id, tensor) for each tensor of a value, depth first in order, including tensors of
// tuples, lists and dicts. Depth is bounded by every reader of files. O(size of the value).
template <class F>
void for_each_tensor(const Graph& graph, ValueId id, const F& f) {
  if (!id.is_valid()) return;
  const Value& value = graph.pool().value(id);
  if (value.kind == ValueKind::kTensor) f(id, graph.pool().tensor(value));
  if (value.kind != ValueKind::kTuple && value.kind != ValueKind::kList && value.kind != ValueKind::kDict) return;
  for (uint32_t i = 0; i < value.count; ++i) for_each_tensor(graph, ValueId(value.first + i), f);
}

// Finds elements of dicts by their keys. The first query about a node notes all its keys, so
// getitems of all elements cost no more than the dict. Valid until values change.
class DictKeys {
 public:
  // The first element with that key in the dict that `node` produces; nothing if it has none.
  // Amortised O(1).
  std::optional<uint32_t> find(const Graph& graph, NodeId node, StringId key);

 private:
  std::unordered_map<uint64_t, uint32_t> elements_;  // by node and key; looked up, never iterated
  IdMap<NodeId, bool> is_noted_;
};

// The module that a node belongs to: its path. For an input with a name among the module's
// parameters and buffers ("layers.0.wq.weight"), the module that owns it. Empty if neither is
// recorded.
std::string_view module_of(const Graph& graph, NodeId node);

// The file's record of an input; nullptr if it has none, and for other nodes. O(1).
const InputSpec* recorded_input(const Graph& graph, NodeId node);

// The recorded role of an input; kUnspecified if none is recorded, and for other nodes.
InputRole recorded_role(const Graph& graph, NodeId node);
bool is_tangent(const Graph& graph, NodeId node);

// The node that is the first argument of `node`; invalid if the argument is no node or missing.
// O(1).
NodeId first_argument(const Graph& graph, NodeId node);

// The one tensor that a node produces; nullptr if its value is anything else or not recorded.
const Tensor* single_tensor(const Graph& graph, NodeId node);

}  // namespace fxopt
