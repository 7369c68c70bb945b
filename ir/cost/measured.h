#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "core/hash_table.h"
#include "ir/cost/measurement.h"
#include "ir/graph/graph.h"
#include "ir/graph/module.h"

namespace fxopt {

// The types of a call's operands and results, in the format of NodeTime::types of
// schemas/profile.proto. Empty if a size is unknown. O(arguments + tensors).
std::string call_types(const Graph& graph, NodeId node, const SymbolValues& values);

// Measured seconds of one graph's calls, from a measurement of it or of another graph with equal
// calls.
class MeasuredCalls {
 public:
  // Refers to the graph and the measurement. `values` are the module's symbols, see
  // symbol_values(). O(calls of the measurement).
  MeasuredCalls(const Graph& graph, const Measurement& measurement, const SymbolValues& values);

  // Seconds of the node with this uid, target and types; else the mean of the calls with this
  // target and these types, such as the call that it is a copy of. Nothing without either.
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
  HashMap<uint64_t, const MeasuredCall*> by_uid_;  // from the graph of the same name
  std::unordered_map<std::string, Sum> alike_;
};

}  // namespace fxopt
