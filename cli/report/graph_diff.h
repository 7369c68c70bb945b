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

// The number and the bytes of the items that share a name.
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
  GraphMemory memory;  // lists every storage
  Cost work;
  bool has_seconds = false;
  Tallies ops;          // calls by target, with the bytes of their results
  Tallies collectives;  // calls by target and group, with the bytes of their operands
  Tallies saved;        // saved values by module, target and type; numbers in module paths are "*"
};

// Returns the facts of a graph. `view.others` must be true. O(nodes + edges + storages log
// storages).
GraphFacts graph_facts(const Footprint& footprint, const MemoryView& view);

// The change, between two graphs, of the tally of one name.
struct TallyChange {
  std::string name;
  Tally before, after;
};
// Returns the rows that differ. The row with the largest change of bytes comes first. Rows with an
// equal change of bytes are ordered by their change of count, then by name. O(n log n).
std::vector<TallyChange> compare_tallies(const Tallies& before, const Tallies& after);

// Prints at most `top` rows of each list, and one line with the number of omitted rows.
void print_graph_diff(std::ostream& out, const GraphFacts& before, const GraphFacts& after, size_t top);
nlohmann::ordered_json graph_diff_json(const GraphFacts& before, const GraphFacts& after);

}  // namespace fxopt
