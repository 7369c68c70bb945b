#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "ir/cost/costs.h"

namespace fxopt {

// Returns the run time of kernels as text, and whether the time is measured or estimated: "at least
// 1.20 ms by the roofline", "1.31 ms measured", "at least 1.25 ms (3 of 8 calls measured, the
// others by the roofline)".
std::string kernel_time_text(const Cost& cost);

// Returns the method that determined the run time of kernels, without the time itself: "roofline",
// "measured", "3 of 8 calls measured".
std::string kernel_basis_text(const Cost& cost);

// Returns the run time of collectives as text: "at least 0.41 ms, 2 of unknown time". Returns an
// empty text if there are no collectives.
std::string link_time_text(const Cost& cost);

// Returns the number of calls for each CostBasis: {"roofline": 3, "measured": 5}.
nlohmann::ordered_json basis_json(const CallsByBasis& calls);

// Returns a cost as JSON. Unknown figures are null. `has_seconds` is CostSources::has_seconds().
nlohmann::ordered_json cost_json(const Cost& cost, bool has_seconds);

}  // namespace fxopt
