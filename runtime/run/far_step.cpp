#include "runtime/run/far_step.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "runtime/run/compare.h"
#include "runtime/run/tensors.h"

namespace fxopt {
namespace {

constexpr double kFar = 1e-3;  // above the float32 rounding errors seen in any step so far

bool is_far(const std::vector<double>& ours, const std::vector<double>& exact) {
  double largest = 0;
  for (const double x : exact) largest = std::isfinite(x) ? std::max(largest, std::fabs(x)) : largest;
  for (size_t i = 0; i < ours.size() && i < exact.size(); ++i) {
    if (std::isnan(ours[i]) != std::isnan(exact[i])) return true;
    if (std::isfinite(exact[i]) && !(std::fabs(ours[i] - exact[i]) <= kFar * largest)) return true;
  }
  return false;
}

}  // namespace

int64_t bytes_of_results(const FxPlan& plan, const ScalarValues& values) {
  int64_t bytes = 0;
  for (uint32_t step = 0; step < plan.num_steps; ++step) {
    for_each_result(plan, values, step, [&](uint32_t, const PlacedTensor& tensor) {
      bytes += tensor.shape.elements() * element_size(tensor.shape.dtype);
    });
  }
  return bytes;
}

Result<std::optional<uint32_t>> first_far_step(Program& narrow, Program& wide, const ScalarValues& values) {
  struct Kept {
    DType dtype;
    std::vector<std::byte> bytes;
  };
  std::vector<std::vector<Kept>> kept(narrow.plan().num_steps);
  Status status = narrow.run_watched([&](uint32_t step) {
    for_each_result(narrow.plan(), values, step, [&](uint32_t, const PlacedTensor& tensor) {
      kept[step].push_back({tensor.shape.dtype, copy_out(tensor, narrow.bytes_of(tensor.storage))});
    });
  });
  if (!status.ok()) return status.error();
  std::optional<uint32_t> found;
  status = wide.run_watched([&](uint32_t step) {
    size_t place = 0;
    for_each_result(wide.plan(), values, step, [&](uint32_t, const PlacedTensor& tensor) {
      if (found.has_value() || place >= kept[step].size()) return;
      const Kept& ours = kept[step][place++];
      const std::vector<std::byte> exact = copy_out(tensor, wide.bytes_of(tensor.storage));
      if (is_far(as_doubles(ours.dtype, ours.bytes), as_doubles(tensor.shape.dtype, exact))) found = step;
    });
  });
  if (!status.ok()) return status.error();
  return found;
}

}  // namespace fxopt
