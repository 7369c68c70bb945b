#pragma once

#include <memory>

#include "runtime/plan/evaluate.h"
#include "runtime/plan/plan.h"
#include "runtime/run/host_memory.h"

namespace fxopt {

// Returns the same step with float64 in place of every real dtype, and with storages enlarged to
// match. The results of the new step have very small rounding errors. The new step is the reference
// of `--tolerance auto`. If a storage has reals of several sizes, the smallest size determines the
// new size of the storage. O(plan).
std::unique_ptr<Plan> widen(const FxPlan& plan, const ScalarValues& values);

// Memory for the inputs of the widened step, converted from the inputs of the step.
class WidenedInputs {
 public:
  // Fails with kOutOfMemory if memory runs out.
  static Result<WidenedInputs> convert(const FxPlan& plan, const FxPlan& widened, const ScalarValues& values,
                                       const std::vector<void*>& given);
  const std::vector<void*>& given() const { return given_; }

 private:
  std::vector<HostBlock> blocks_;
  std::vector<void*> given_;
};

}  // namespace fxopt
