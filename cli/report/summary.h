#pragma once

#include <cstddef>
#include <optional>
#include <ostream>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "ir/summary/summary.h"

namespace fxopt {

// The length and the depth of a printed summary. Rows of a list beyond `top` become one line of
// sums.
struct SummaryView {
  size_t top = 20;
  // The number of components of module paths. If absent, as many components as fit into `top` rows.
  std::optional<size_t> module_depth;
};

// Prints the totals, then lists with the largest rows first.
void print_summary(std::ostream& out, const GraphSummary& summary, const SummaryView& view);
// Prints a short form of the graphs that operators run. Graphs with the same calls share a row.
void print_subgraphs(std::ostream& out, const std::vector<GraphSummary>& summaries, const SummaryView& view);

// Returns the same figures with complete lists. If a number of bytes is a lower bound, an
// additional key with "unknown" in its name counts the unknown values.
nlohmann::ordered_json summary_json(const GraphSummary& summary, const SummaryView& view);

// Returns the depth of the module table.
size_t module_depth(const GraphSummary& summary, const SummaryView& view);

}  // namespace fxopt
