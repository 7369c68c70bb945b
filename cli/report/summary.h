#pragma once

#include <cstdint>
#include <map>
#include <ostream>
#include <string>

#include <nlohmann/json.hpp>

#include "ir/graph/graph.h"

namespace fxopt {

using Counts = std::map<std::string, int64_t>;

// What a graph is made of, in counts.
struct GraphSummary {
  std::string graph;
  std::string kind;
  size_t nodes = 0;
  size_t edges = 0;
  Counts ops;  // calls by target
  Counts phases;
  Counts tags;
  Counts dtypes;       // tensors among the values
  Counts collectives;  // by group
  Counts inputs;       // placeholders by role
  Counts outputs;      // by role
  Counts opaque;       // calls of targets that neither the op table nor the file describes
  size_t storages = 0;
  int64_t storage_bytes = 0;  // of those with a known size
  size_t unknown_storages = 0;
  bool has_storages = false;  // false when the graph breaks an invariant, so that they cannot be told
};

enum class Validity { kBroken, kValid };

// O(nodes + edges + values). Storages need a valid graph.
GraphSummary summarize(const Graph& graph, Validity validity);

void print_summary(std::ostream& out, const GraphSummary& summary);
nlohmann::ordered_json summary_json(const GraphSummary& summary);

}  // namespace fxopt
