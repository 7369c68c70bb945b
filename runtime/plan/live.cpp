#include "runtime/plan/live.h"

#include <algorithm>
#include <vector>

#include "core/saturate.h"

namespace fxopt {

PlanPeak peak_of(const FxPlan& plan, const ScalarValues& values, uint32_t device) {
  const auto bytes_of = [&](const FxStorage& storage) {
    const bool is_here = storage.device == device && storage.first != FX_NONE;
    return is_here ? std::max<int64_t>(values.integer(storage.bytes).value_or(0), 0) : 0;
  };
  std::vector<WideSum> changes(plan.num_steps + 2, 0);
  for (uint64_t i = 0; i < plan.num_storages; ++i) {
    const FxStorage& storage = plan.storages[i];
    const int64_t bytes = bytes_of(storage);
    if (bytes == 0) continue;
    changes[storage.first] += bytes;
    changes[storage.last + 1] -= bytes;
  }
  PlanPeak peak;
  WideSum live = 0, most = 0;
  for (uint32_t step = 0; step < plan.num_steps; ++step) {
    live += changes[step];
    if (live > most) {
      most = live;
      peak.step = step;
    }
  }
  peak.bytes = saturate(most);
  for (uint64_t i = 0; i < plan.num_storages; ++i) {
    const FxStorage& storage = plan.storages[i];
    const bool is_live = storage.first <= peak.step && peak.step <= storage.last;
    if (is_live && storage.role < kNumRoles) {
      peak.by_role[storage.role] = saturate(WideSum{peak.by_role[storage.role]} + bytes_of(storage));
    }
  }
  return peak;
}

}  // namespace fxopt
