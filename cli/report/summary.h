#pragma once

#include <cstddef>
#include <optional>
#include <ostream>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "ir/summary/summary.h"

namespace fxopt {

// How much of a summary to print. Rows beyond `top` in a list become one line of sums.
struct SummaryView {
  size_t top = 20;
  // components of module paths; nothing: as many as fit into `top` rows
  std::optional<size_t> module_depth;
};

// Totals first, then lists with the largest rows first.
void print_summary(std::ostream& out, const GraphSummary& summary, const SummaryView& view);
// The graphs that ops run, in short form: graphs with the same calls share a row.
void print_subgraphs(std::ostream& out, const std::vector<GraphSummary>& summaries, const SummaryView& view);

// The same figures with whole lists. Byte counts that are lower bounds have "unknown" beside them.
nlohmann::ordered_json summary_json(const GraphSummary& summary, const SummaryView& view);

// The depth of the module table.
size_t module_depth(const GraphSummary& summary, const SummaryView& view);

}  // namespace fxopt
