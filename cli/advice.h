#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/report/memory.h"
#include "ir/device/profile.h"
#include "ir/device/work.h"
#include "ir/graph/module.h"
#include "ir/memory/footprint.h"

namespace fxopt {

// What is asked of a device's peaks: that memory does not run out, and no budget is broken.
struct AdviceGoal {
  bool expandable = false;  // the segments that peaks are of
  std::vector<std::pair<MemoryMetric, int64_t>> budgets;
};

// Tries recompute policies on copies of a graph's module: each once, however many devices ask. Refers to the footprint and
// the profile.
class Adviser {
 public:
  Adviser(const Footprint& footprint, const MeasureOptions& options, const DeviceProfile& work);
  ~Adviser();

  // The first policy, the cheapest first, with which the goal is reached on `measured`'s device, else the one with the
  // lowest of the peaks that are too high. Nothing where none lowers it. O(policies * passes) once, then O(policies *
  // devices).
  std::optional<Advice> advise(const DeviceFootprint& measured, const AdviceGoal& goal);

 private:
  struct Trial;

  const Trial& trial(size_t policy);

  const Footprint& footprint_;
  MeasureOptions options_;
  const DeviceProfile& profile_;
  std::vector<std::string> policies_;
  std::vector<std::unique_ptr<Trial>> trials_;
  std::optional<Work> work_;  // of the graph as it is
};

}  // namespace fxopt
