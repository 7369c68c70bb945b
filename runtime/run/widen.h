#pragma once

#include <memory>

#include "runtime/plan/evaluate.h"
#include "runtime/plan/plan.h"
#include "runtime/run/host_memory.h"

namespace fxopt {

// Returns the same step with every real dtype replaced by float64 and storages enlarged to match:
// its results have hardly any rounding. It is the reference of `--tolerance auto`. A storage with
// reals of several sizes is enlarged as the smallest needs. O(plan).
std::unique_ptr<Plan> widen(const FxPlan& plan, const ScalarValues& values);

// Memory for the widened step's inputs, converted from the step's inputs.
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
