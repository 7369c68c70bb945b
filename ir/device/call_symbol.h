#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/graph/module.h"
#include "ir/ops/op.h"

namespace fxopt {

// A symbol of a profile as a place in the calls of one operator: "query.size.1" is a property of a
// tensor, "causal" the value of an argument. ir/device/README.md lists the symbols.
struct CallSymbol {
  enum class Property : uint8_t {
    kValue,
    kGiven,
    kCount,
    kNumel,
    kBytes,
    kItemsize,
    kRank,
    kSize,    // dimension `number`
    kLast,    // dimension `number` from the end
    kSizeOf,  // the dimension that the argument at `number` names
    kContiguous,
    kPermuted,  // contiguous if its dimensions are taken in the order `order`
    kBlasReady,
    kHasLast,
    kIsDType,
    kElement,  // element `number` of a list of numbers or booleans
  };

  bool is_output = false;
  size_t position = 0;  // the argument's in the schema, or the tensor's in the outputs
  Property property = Property::kValue;
  size_t number = 0;
  DType dtype = DType::kUnspecified;
  std::vector<size_t> order;
};

// The meaning of `text` in calls of `op`; nothing if it names neither an argument nor an output, or
// no property. O(arguments).
std::optional<CallSymbol> find_call_symbol(std::string_view text, const Op& op);

// Its value in one call; nothing if the call does not show it. `values` are the module's symbols.
// O(rank + elements of a list).
std::optional<int64_t> value_of(const Graph& graph, NodeId node, const CallSymbol& symbol, const SymbolValues& values);

}  // namespace fxopt
