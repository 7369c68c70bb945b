#pragma once

#include <memory>

#include "runtime/plan/evaluate.h"
#include "runtime/plan/plan.h"
#include "runtime/run/host_memory.h"

namespace fxopt {

// The same step with every real dtype made float64, and storages as much larger: what results would be with hardly any rounding. It is
// the judge of `--tolerance auto`. Storages that hold reals of several sizes are as large as the smallest needs. O(plan).
std::unique_ptr<Plan> widen(const FxPlan& plan, const ScalarValues& values);

// Memory for the widened step's inputs, converted from that of the step.
class WidenedInputs {
 public:
  // Errors: kOutOfMemory.
  static Result<WidenedInputs> convert(const FxPlan& plan, const FxPlan& widened, const ScalarValues& values,
                                       const std::vector<void*>& given);
  const std::vector<void*>& given() const { return given_; }

 private:
  std::vector<HostBlock> blocks_;
  std::vector<void*> given_;
};

}  // namespace fxopt
