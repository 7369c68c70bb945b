#pragma once

#include <memory>

#include "runtime/plan/evaluate.h"
#include "runtime/plan/plan.h"
#include "runtime/run/host_memory.h"

namespace fxopt {

// Returns a copy of the plan in which all float16, bfloat16 and float32 tensors are float64
// tensors. The copy has no called graphs (FxPlan::graphs). The rounding errors of float64 are much
// smaller, so `--tolerance auto` uses the results of this plan as the reference. The storages of
// the changed tensors are larger than in `plan`. If the narrowest changed tensor in a storage has b
// bytes for each element, the storage's size is multiplied by 8 / b. For example, the factor of a
// storage with bfloat16 tensors is 4. A size that is unknown in `values` does not change. O(plan).
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
