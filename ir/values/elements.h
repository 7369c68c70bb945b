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

// Which elements of a tuple, list or dict a getitem takes, and which of its tensors those are. Valid until values
// change.
class ElementFinder {
 public:
  explicit ElementFinder(const Graph& graph) : graph_(graph) {}

  // Appends the elements that `key` takes from what `parent` produces, as Python indexes and slices. False where that
  // cannot be told. `parent` has elements. O(elements taken), amortised.
  bool find(NodeId parent, const Arg& key, std::vector<size_t>& out);

  // The tensors of element `i`, among all tensors of the node's value depth first: first and count. The first question
  // about a node counts all its elements, so that getitems of it take no longer than its outputs.
  std::pair<size_t, size_t> tensors(NodeId node, size_t i);

 private:
  bool find_slice(int64_t count, std::span<const Arg> bounds, std::vector<size_t>& out) const;

  const Graph& graph_;
  DictKeys dict_keys_;
  IdMap<NodeId, uint32_t> ends_of_;   // where the ends of a node's elements begin in `ends_`; 0: nobody asked
  std::vector<uint32_t> ends_ = {0};  // for each element the tensors up to its end
};

}  // namespace fxopt
