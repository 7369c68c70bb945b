#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "core/hash_table.h"
#include "ir/cost/measurement.h"
#include "ir/graph/graph.h"
#include "ir/graph/module.h"

namespace fxopt {

// The tensors that a call is given and makes, as NodeTime::types of schemas/profile.proto has them; empty where a size is
// not known. O(arguments + tensors).
std::string call_types(const Graph& graph, NodeId node, const SymbolValues& values);

// What calls of one graph took, by a measurement of it, or of another graph with calls that are alike.
class MeasuredCalls {
 public:
  // Refers to the graph; `values` of the module's symbols, see symbol_values(). O(calls of the measurement).
  MeasuredCalls(const Graph& graph, const Measurement& measurement, const SymbolValues& values);

  // Seconds of the node with this uid, target and types; else the mean of the calls of this target with these types,
  // such as of the call that it is a copy of. Nothing for others. O(arguments + tensors).
  std::optional<double> of(NodeId node) const;

 private:
  struct Sum {
    double seconds = 0;
    size_t calls = 0;
  };
  static std::string key(std::string_view target, std::string_view types);

  const Graph& graph_;
  SymbolValues values_;
  HashMap<uint64_t, const MeasuredCall*> by_uid_;  // of the graph of this name
  std::unordered_map<std::string, Sum> alike_;
};

}  // namespace fxopt
