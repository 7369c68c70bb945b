#include "cli/report/memory/costs.h"

#include <nlohmann/json.hpp>

#include "cli/print/table.h"
#include "core/text.h"

namespace fxopt {

std::string kernel_time_text(const Cost& cost) {
  const std::string time = milliseconds_text(cost.seconds);
  const size_t all = cost.num_kernels(), measured = cost.num_kernels(CostBasis::kMeasured);
  if (measured == 0) return "at least " + time + " by the roofline";
  if (measured == all) return time + " measured";
  return "at least " + time + " (" + kernel_basis_text(cost) + ", the others by the roofline)";
}

std::string kernel_basis_text(const Cost& cost) {
  const size_t all = cost.num_kernels(), measured = cost.num_kernels(CostBasis::kMeasured);
  if (measured == 0) return "roofline";
  return measured == all ? "measured" : std::to_string(measured) + " of " + count_text(all, "call") + " measured";
}

std::string link_time_text(const Cost& cost) {
  const size_t all = cost.num_collectives(), untimed = cost.num_collectives(CostBasis::kUnknown);
  if (all == 0) return "";
  if (untimed == all) return "unknown time";
  const std::string time = milliseconds_text(cost.link_seconds);
  return untimed == 0 ? time : "at least " + time + ", " + std::to_string(untimed) + " of unknown time";
}

nlohmann::ordered_json basis_json(const CallsByBasis& calls) {
  nlohmann::ordered_json counts = nlohmann::ordered_json::object();
  for (size_t i = 0; i < kNumCostBases; ++i) {
    if (calls[i] > 0) counts[std::string(cost_basis_name(static_cast<CostBasis>(i)))] = calls[i];
  }
  return counts;
}

nlohmann::ordered_json cost_json(const Cost& cost, bool has_seconds) {
  using Json = nlohmann::ordered_json;
  const bool has_links = cost.num_collectives(CostBasis::kUnknown) < cost.num_collectives();
  return {{"flops", cost.flops},
          {"bytes", cost.bytes},
          {"unknown_calls", cost.unknown},
          {"seconds", has_seconds ? Json(cost.seconds) : Json(nullptr)},
          {"kernels", basis_json(cost.kernels)},
          {"collectives", cost.num_collectives()},
          {"collective_seconds", has_links ? Json(cost.link_seconds) : Json(nullptr)},
          {"collective_basis", basis_json(cost.collectives)}};
}

}  // namespace fxopt
