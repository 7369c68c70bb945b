#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/graph/graph.h"

namespace fxopt {

// True if `a` and `b` are known to be the same number: equal constants, or equal polynomials.
bool same_dim(const Module& module, const Dim& a, const Dim& b);

// True if two tensors have the same metadata. Two tensors with the same metadata on one storage are
// equal. The dtype, layout, sizes, strides, offset, device, conjugate and negative bits, subclass
// and placements must be equal. Storage ids and requires_grad are ignored. O(rank).
bool same_metadata(const Module& module, const Tensor& a, const Tensor& b);

// True if two values of one graph, including all elements of containers, have the same kinds and
// the same metadata. An absent value is equal only to another absent value. O(size of the value).
bool same_metadata(const Graph& graph, ValueId a, ValueId b);

// True if `a` and `b` have the same number of dimensions, and each pair of dimensions satisfies
// same_dim().
bool same_sizes(const Module& module, DimsId a, DimsId b);

// True for a dtype that gradients may have: real floating point with more than 8 bits.
bool is_floating(DType dtype);

// True if the node produces one tensor of one element, whatever its rank.
bool has_one_element(const Graph& graph, NodeId node);

// Returns the inputs of the graph, in order. O(nodes).
std::vector<NodeId> placeholders_of(const Graph& graph);

// Returns the leaves of the output node's arguments in the order of Graph::outputs. The values of a
// dict are included, but not its keys. A leaf that is not a node, such as a constant, has an
// invalid id in the list. Returns an empty list if the graph has no output. O(arguments).
std::vector<NodeId> output_leaves(const Graph& graph);

// Returns the leaves of `range`, the arguments of a node of the graph. Constants are included.
// O(arguments).
std::vector<Arg> leaves_of(const Graph& graph, ArgRange range);

// Whether an op returns a view of its input's memory or a copy. This is for ops that return a view
// in some calls and a copy in other calls, such as `reshape` and `to`.
enum class ViewAnswer : uint8_t { kView, kCopy, kUnknown };

// Decides from the two recorded tensors whether `to` is a view of `from` or a copy. A view has the
// dtype, device, offset, conjugate bit and negative bit of its input. A view also has the strides
// of `from.view(sizes of to)`. The answer is kUnknown in these cases:
// - A size or a stride is symbolic and differs from the input's size or stride.
// - A tensor is empty.
// - A property is not recorded.
// O(rank).
ViewAnswer compare_as_view(const Module& module, const Tensor& from, const Tensor& to);

// Whether two attributes of one module are known to refer to the same constant or graph. False for
// opaque objects and for attributes that are not recorded.
bool name_same_thing(const Attribute& a, const Attribute& b);

// Calls f(id, tensor) for each tensor of a value, depth first. Tensors in tuples, lists and dicts
// are included. Every file parser limits the depth of values. O(size of the value).
template <class F>
void for_each_tensor(const Graph& graph, ValueId id, const F& f) {
  if (!id.is_valid()) return;
  const Value& value = graph.pool().value(id);
  if (value.kind == ValueKind::kTensor) f(id, graph.pool().tensor(value));
  if (value.kind != ValueKind::kTuple && value.kind != ValueKind::kList && value.kind != ValueKind::kDict) return;
  for (uint32_t i = 0; i < value.count; ++i) for_each_tensor(graph, ValueId(value.first + i), f);
}

// Finds elements of dicts by their keys. The first query about a node whose value is a dict stores
// all keys of the dict. Therefore, the queries for all elements together take time in proportion to
// the dict. Valid until values change.
class DictKeys {
 public:
  // Returns the index of the first element with the key in the dict that `node` produces. Returns
  // nothing if the dict does not have the key. Amortised O(1).
  std::optional<uint32_t> find(const Graph& graph, NodeId node, StringId key);

 private:
  std::unordered_map<uint64_t, uint32_t> elements_;  // by node and key; the order is never used
  IdMap<NodeId, bool> is_noted_;
};

// Returns the path of the module to which a node belongs. An input may have the name of a parameter
// or buffer ("layers.0.wq.weight"). The input then belongs to the module that owns the parameter or
// buffer. Returns an empty text if neither the path nor a name of this kind is recorded.
std::string_view module_of(const Graph& graph, NodeId node);

// Returns the InputSpec (role, name, aliases and so on) that the file records for an input. Returns
// nullptr if the file records none, or if the node is not an input. O(1).
const InputSpec* recorded_input(const Graph& graph, NodeId node);

// Returns the recorded role of an input. Returns kUnspecified if no role is recorded, or if the
// node is not an input.
InputRole recorded_role(const Graph& graph, NodeId node);
bool is_tangent(const Graph& graph, NodeId node);

// Returns the first argument of `node` if this argument is a node. Invalid if the argument is
// missing or is not a node. O(1).
NodeId first_argument(const Graph& graph, NodeId node);

// Returns the tensor that a node produces. Returns nullptr if the node's value is not recorded or
// is not a single tensor.
const Tensor* single_tensor(const Graph& graph, NodeId node);

}  // namespace fxopt
