#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "core/hash_table.h"
#include "ir/cost/measurement.h"
#include "ir/graph/graph.h"
#include "ir/graph/module.h"

namespace fxopt {

// Returns the types of a call's operands and results, in the format of NodeTime::types in
// schemas/profile.proto. Returns an empty text if a size is unknown. O(arguments + tensors).
std::string call_types(const Graph& graph, NodeId node, const SymbolValues& values);

// The measured seconds of one graph's calls. The measurement may be of this graph or of another
// graph with equal calls.
class MeasuredCalls {
 public:
  // The graph and the measurement must outlive this object. `values` are the values of the module's
  // symbols, see symbol_values(). O(calls of the measurement).
  MeasuredCalls(const Graph& graph, const Measurement& measurement, const SymbolValues& values);

  // Returns the measured seconds of `node`. If a measured call of this graph has the node's uid,
  // target and types, returns the seconds of this call. Otherwise, returns the mean of all measured
  // calls with the node's target and types. Returns nothing if no such call was measured.
  // O(arguments + tensors).
  std::optional<double> of(NodeId node) const;

 private:
  struct Sum {
    double seconds = 0;
    size_t calls = 0;
  };
  static std::string key(std::string_view target, std::string_view types);

  const Graph& graph_;
  SymbolValues values_;
  // The calls of the measured graph that has this graph's name.
  HashMap<uint64_t, const MeasuredCall*> by_uid_;
  std::unordered_map<std::string, Sum> alike_;
};

}  // namespace fxopt
