#pragma once

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/report/memory/costs.h"
#include "cli/report/memory/diff.h"
#include "cli/report/memory/report.h"
#include "ir/cost/costs.h"
#include "ir/memory/footprint.h"

namespace fxopt {

// The number of items of one name, and their bytes.
struct Tally {
  int64_t count = 0;
  int64_t bytes = 0;
  bool operator==(const Tally&) const = default;
};
using Tallies = std::map<std::string, Tally>;

// The facts of one graph that are compared.
struct GraphFacts {
  std::string graph;
  size_t nodes = 0, edges = 0;
  GraphMemory memory;  // with every storage
  Cost work;
  bool has_seconds = false;
  Tallies ops;          // calls by target, bytes of their results
  Tallies collectives;  // calls by target and group, bytes of their operands
  Tallies saved;        // saved values by module (any number as "*"), target and type
};

// `view`: with others. O(nodes + edges + storages log storages).
GraphFacts graph_facts(const Footprint& footprint, const MemoryView& view);

// The change under one name.
struct TallyChange {
  std::string name;
  Tally before, after;
};
// Rows that differ: the largest change of bytes first, then of count, then by name. O(n log n).
std::vector<TallyChange> compare_tallies(const Tallies& before, const Tallies& after);

// `top`: rows of each list. One line sums up the others.
void print_graph_diff(std::ostream& out, const GraphFacts& before, const GraphFacts& after, size_t top);
nlohmann::ordered_json graph_diff_json(const GraphFacts& before, const GraphFacts& after);

}  // namespace fxopt
