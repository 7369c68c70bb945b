#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/graph/module.h"
#include "ir/ops/op.h"

namespace fxopt {

// A symbol in an expression of a device profile, resolved for the calls of one operator. For
// example, "query.size.1" is a property of a tensor, and "causal" is the value of an argument.
// ir/device/README.md lists the symbols.
struct CallSymbol {
  enum class Property : uint8_t {
    kValue,
    kGiven,
    kCount,
    kNumel,
    kBytes,
    kItemsize,
    kRank,
    kSize,    // the size of dimension `number`
    kLast,    // the size of dimension `number`, counted from the end
    kSizeOf,  // the size of the dimension that argument `number` selects
    kContiguous,
    kPermuted,  // contiguous after a permutation of dimensions by `order`
    kBlasReady,
    kHasLast,
    kIsDType,
    kElement,  // the element at index `number` of a list; the list contains numbers or booleans
  };

  bool is_output = false;
  size_t position = 0;  // position of the argument in the schema, or of the tensor in the outputs
  Property property = Property::kValue;
  size_t number = 0;
  DType dtype = DType::kUnspecified;
  std::vector<size_t> order;
};

// Returns the meaning of `text` in calls of `op`. `text` begins with the name of an argument or an
// output. The name of a property may follow, such as "size.1" in "query.size.1". Returns nothing if
// the argument or the property is unknown, or if `op` has no schema. O(arguments).
std::optional<CallSymbol> find_call_symbol(std::string_view text, const Op& op);

// Returns the value of `symbol` in one call, or nothing if the graph does not contain the value.
// `values` are the values of the module's symbols. O(rank + elements of a list).
std::optional<int64_t> value_of(const Graph& graph, NodeId node, const CallSymbol& symbol, const SymbolValues& values);

}  // namespace fxopt
