#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/graph/graph.h"

namespace fxopt {

// True when both are known to be the same number: equal constants, or equal as polynomials.
bool same_dim(const Module& module, const Dim& a, const Dim& b);

// True when two tensors on one storage would be the same tensor: dtype, layout, sizes, strides, offset, device,
// conjugate and negative bits, subclass and placements agree. Storage ids and requires_grad are not asked for. O(rank).
bool same_metadata(const Module& module, const Tensor& a, const Tensor& b);

// The same for whole values of one graph: kinds and elements agree. An absent value agrees only with an absent one.
// O(size of the value).
bool same_metadata(const Graph& graph, ValueId a, ValueId b);

// The same number of dimensions, each same_dim().
bool same_sizes(const Module& module, DimsId a, DimsId b);

// A dtype that gradients have: real floating point, not of 8 bits or less.
bool is_floating(DType dtype);

// True when the node produces one tensor of one element, whatever its rank.
bool has_one_element(const Graph& graph, NodeId node);

// The inputs of the graph, in order. O(nodes).
std::vector<NodeId> placeholders_of(const Graph& graph);

// The leaves of the output node's arguments in the order of Graph::outputs, values of a dict included, keys not;
// invalid where a leaf is no node. Empty without an output. O(arguments).
std::vector<NodeId> output_leaves(const Graph& graph);

// The same of any arguments of the graph, constants as they are. O(arguments).
std::vector<Arg> leaves_of(const Graph& graph, ArgRange range);

// Whether an op that changes nothing but the shape, and copies only where it must, hands back its input's memory.
enum class ViewAnswer : uint8_t { kView, kCopy, kUnknown };

// Decides from the two recorded tensors: a view has its input's dtype, device, offset and bits, and the strides that
// its sizes have on the input's. Unknown where a size or stride is symbolic and not the input's own, where a tensor is
// empty and where something is not recorded. O(rank).
ViewAnswer compare_as_view(const Module& module, const Tensor& from, const Tensor& to);

// Whether two attributes of one module name one thing: a constant, a graph. Of objects that nobody understands, and of what
// is not recorded, nobody can tell.
bool name_same_thing(const Attribute& a, const Attribute& b);

// Calls f(id, tensor) for each tensor of a value, depth first in order: those of tuples, lists and dicts, too. Depth is
// bounded by every reader of files. O(size of the value).
template <class F>
void for_each_tensor(const Graph& graph, ValueId id, const F& f) {
  if (!id.is_valid()) return;
  const Value& value = graph.pool().value(id);
  if (value.kind == ValueKind::kTensor) f(id, graph.pool().tensor(value));
  if (value.kind != ValueKind::kTuple && value.kind != ValueKind::kList && value.kind != ValueKind::kDict) return;
  for (uint32_t i = 0; i < value.count; ++i) for_each_tensor(graph, ValueId(value.first + i), f);
}

// Finds elements of dicts by their keys. All keys of a node are noted at the first question about it, so that a getitem
// of each takes no longer than the dict. Valid until values change.
class DictKeys {
 public:
  // The first element of that key in the dict that `node` produces; nothing when it has none. Amortised O(1).
  std::optional<uint32_t> find(const Graph& graph, NodeId node, StringId key);

 private:
  std::unordered_map<uint64_t, uint32_t> elements_;  // by node and key; looked up, never iterated
  IdMap<NodeId, bool> is_noted_;
};

// The module that a node belongs to: its path, or of an input that has a name among the module's parameters and buffers
// ("layers.0.wq.weight") the one that owns it; empty when nothing tells.
std::string_view module_of(const Graph& graph, NodeId node);

// What the file says of an input; null where it says nothing, and for other nodes. O(1).
const InputSpec* recorded_input(const Graph& graph, NodeId node);

// What the file says an input is; kUnspecified where it does not, and for other nodes.
InputRole recorded_role(const Graph& graph, NodeId node);
bool is_tangent(const Graph& graph, NodeId node);

// The node that the first argument of `node` is; invalid when it is something else or missing. O(1).
NodeId first_argument(const Graph& graph, NodeId node);

// The one tensor a node produces; nullptr when it produces something else or nothing is recorded.
const Tensor* single_tensor(const Graph& graph, NodeId node);

}  // namespace fxopt
