#pragma once

#include <memory>

#include "runtime/plan/evaluate.h"
#include "runtime/plan/plan.h"
#include "runtime/run/host_memory.h"

namespace fxopt {

// Returns a plan of the training step in which every floating-point dtype is float64, and storages
// are larger. The rounding errors of float64 are much smaller, so `--tolerance auto` uses the
// results of this plan as the reference. A storage grows by the factor 8 / b, where b is the number
// of bytes of the narrowest real dtype in the storage. O(plan).
std::unique_ptr<Plan> widen(const FxPlan& plan, const ScalarValues& values);

// Memory for the inputs of a widened plan (widen()), with floating-point elements converted to
// float64.
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
