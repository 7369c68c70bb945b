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
  // The number of components of module paths to show. If absent, the table uses the largest number
  // that results in at most `top` rows. If one component already results in more rows, it uses 1.
  std::optional<size_t> module_depth;
};

// Prints the totals of a graph, followed by several tables. In the tables of inputs, modules,
// operators and data types, the largest row comes first.
void print_summary(std::ostream& out, const GraphSummary& summary, const SummaryView& view);
// Prints one table of the subgraphs. A subgraph is a graph that an operator of another graph runs,
// such as a branch of `higher_order.cond`. Two subgraphs share a row if they have equal numbers of
// nodes, and equal numbers of calls of each operator.
void print_subgraphs(std::ostream& out, const std::vector<GraphSummary>& summaries, const SummaryView& view);

// Returns the figures of print_summary() as JSON, with complete lists. If a number of bytes is a
// lower bound, an additional key with "unknown" in its name counts the unknown values.
nlohmann::ordered_json summary_json(const GraphSummary& summary, const SummaryView& view);

// Returns the depth of the module table.
size_t module_depth(const GraphSummary& summary, const SummaryView& view);

}  // namespace fxopt
