#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "core/arena/arena.h"
#include "core/result.h"
#include "runtime/abi/plan.h"
#include "runtime/plan/evaluate.h"

namespace fxopt {

struct PlaceOptions {
  uint32_t device = FX_NONE;  // index into the plan's strings, or FX_NONE for no recorded device
  // With 1 stream, all steps of the plan run in order. With 2 streams, collectives and messages run
  // on the second stream.
  uint32_t streams = 1;
  int64_t arena_effort = 20'000'000;  // limit of search steps, see ArenaOptions::effort
  ScalarValues::SymbolOf symbols;     // values of symbols, which override the file's hints
  // Values of scalars, which replace hints and `symbols`. May be null. The object must outlive the
  // call.
  const ScalarValues* values = nullptr;
  // Returns the bytes of workspace that a step's kernel needs. The number is at least 0. If this
  // function is empty, steps have no workspaces.
  std::function<int64_t(uint32_t step)> workspace;
  bool every_device = false;  // place the storages of all devices, and ignore `device`
  int64_t guard_bytes = 0;    // unused bytes before and after each block
};

// The arrays to which an FxPlacement points.
class PlanPlacement {
 public:
  std::vector<FxBlock> blocks;
  std::vector<uint16_t> streams;
  std::vector<FxEvent> events;
  std::vector<FxBlock> workspaces;
  std::vector<uint16_t> kernels;
  uint32_t device = FX_NONE;
  uint32_t stream_count = 1;
  int64_t arena_bytes = 0;
  int64_t lower_bound = 0;
  std::string_view method;  // name of the algorithm that chose the offsets; refers to a literal

  // Returns the current arrays. The view is valid until the placement changes. O(1).
  FxPlacement view() const;
};

// Assigns offsets in an arena to the storages of one device, and assigns the plan's steps to
// streams.
//
// With two streams, a collective waits for all earlier steps of the first stream, as in PyTorch. A
// step waits for a collective if it uses a storage that the collective reads, writes or makes.
// Storages and workspace of a collective are kept until the first stream has waited for the
// collective. Their bytes are not reused earlier. The workspace of any step that is not a
// collective is in use only while the step runs. Steps that run on a device other than the placed
// device get no workspace in this placement. device_of() determines the device of a step.
//
// O(steps + operands of the steps), plus plan_arena(). Fails with kUnknownSize in two cases:
// - The size of a storage of kind FX_SOURCE_PLANNED depends on a symbol without a value.
// - The sum of the sizes of all storages and workspaces needs more than 62 bits.
Result<PlanPlacement> place(const FxPlan& plan, const PlaceOptions& options);

// Returns the devices of the plan's storages, as indices into the plan's strings, in the order of
// their first storage. FX_NONE is included if a storage has no recorded device. O(storages).
std::vector<uint32_t> devices_of(const FxPlan& plan);

}  // namespace fxopt
