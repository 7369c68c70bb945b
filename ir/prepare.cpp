#include "ir/prepare.h"

#include "core/stopwatch.h"
#include "ir/check/verify.h"
#include "ir/values/complete_values.h"

namespace fxopt {

Prepared prepare(Module& module) {
  Prepared result;
  Stopwatch watch;
  result.broken = verify(module);
  result.verify_seconds = watch.lap();
  if (!result.broken.empty()) return result;
  result.lowered = lower_control_deps(module);
  result.completed = complete_values(module);
  return result;
}

}  // namespace fxopt
