#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/values/values.h"

namespace fxopt {

// True for a tuple, list or dict, because getitem takes elements from these values.
bool has_elements(const Value& value);

// Finds the elements that a getitem takes from a tuple, list or dict, and the tensors of these
// elements. Valid until values change.
class ElementFinder {
 public:
  explicit ElementFinder(const Graph& graph) : graph_(graph) {}

  // Appends to `out` the indices of the elements that `key` takes from the result of `parent`.
  // Indices and slices work as in Python. Returns false if the elements are unknown. `parent` must
  // have elements. O(elements taken), amortised.
  bool find(NodeId parent, const Arg& key, std::vector<size_t>& out);

  // Returns the index of the first tensor of element `i`, and the number of tensors of this
  // element. Indices count all tensors of the node's value, depth first. The first query about a
  // node counts the tensors of all its elements. Therefore, the queries for all getitems of a node
  // together take time in proportion to the node's outputs.
  std::pair<size_t, size_t> tensors(NodeId node, size_t i);

 private:
  bool find_slice(int64_t count, std::span<const Arg> bounds, std::vector<size_t>& out) const;

  const Graph& graph_;
  DictKeys dict_keys_;
  // Index of the node's first entry in `ends_`. 0 before the first query about the node.
  IdMap<NodeId, uint32_t> ends_of_;
  // For each element of a node: the number of tensors in this and all earlier elements of the node.
  // Entry 0 is unused.
  std::vector<uint32_t> ends_ = {0};
};

}  // namespace fxopt
