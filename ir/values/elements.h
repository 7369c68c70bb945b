#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/values/values.h"

namespace fxopt {

// True for a value that getitem takes elements from: a tuple, list or dict.
bool has_elements(const Value& value);

// Finds the elements of a tuple, list or dict that a getitem takes, and their tensors. Valid until
// values change.
class ElementFinder {
 public:
  explicit ElementFinder(const Graph& graph) : graph_(graph) {}

  // Appends the elements that `key` takes from the result of `parent`, as Python indexes and
  // slices. Returns false if they are unknown. `parent` has elements. O(elements taken), amortised.
  bool find(NodeId parent, const Arg& key, std::vector<size_t>& out);

  // The tensors of element `i` among all tensors of the node's value, depth first: first and count.
  // The first query about a node counts all its elements, so getitems of it cost no more than its
  // outputs.
  std::pair<size_t, size_t> tensors(NodeId node, size_t i);

 private:
  bool find_slice(int64_t count, std::span<const Arg> bounds, std::vector<size_t>& out) const;

  const Graph& graph_;
  DictKeys dict_keys_;
  IdMap<NodeId, uint32_t> ends_of_;   // start of the node's ends in `ends_`; 0: not filled yet
  std::vector<uint32_t> ends_ = {0};  // for each element, the number of tensors up to its end
};

}  // namespace fxopt
