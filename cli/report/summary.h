#pragma once

#include <cstddef>
#include <optional>
#include <ostream>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "ir/summary/summary.h"

namespace fxopt {

// How much of a summary to print. The rows of a list beyond `top` become one line that sums them up.
struct SummaryView {
  size_t top = 20;
  std::optional<size_t> module_depth;  // components of module paths; nothing: as deep as fits into `top` rows
};

// Totals first, then lists with the biggest first.
void print_summary(std::ostream& out, const GraphSummary& summary, const SummaryView& view);
// The graphs that ops run, in short: those with the same calls in one row.
void print_subgraphs(std::ostream& out, const std::vector<GraphSummary>& summaries, const SummaryView& view);

// The same figures, lists whole. Numbers of bytes that are lower bounds have "unknown" beside them.
nlohmann::ordered_json summary_json(const GraphSummary& summary, const SummaryView& view);

// The depth of the module table.
size_t module_depth(const GraphSummary& summary, const SummaryView& view);

}  // namespace fxopt
