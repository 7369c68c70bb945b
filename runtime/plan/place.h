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
  // If the number is 1, all steps run in order on one stream. If the number is 2, collectives and
  // messages run on a second stream.
  uint32_t streams = 1;
  int64_t arena_effort = 20'000'000;  // see ArenaOptions
  ScalarValues::SymbolOf symbols;     // values of symbols, which override the file's hints
  // Values of a run, or null. If not null, these values replace hints and `symbols`. The object
  // must outlive the call.
  const ScalarValues* values = nullptr;
  // Returns the bytes of workspace that a step's kernel needs. The number is at least 0. If this
  // function is empty, steps have no workspaces.
  std::function<int64_t(uint32_t step)> workspace;
  bool every_device = false;  // place all storages on this device, and ignore recorded devices
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
  std::string_view method;  // name of the method that found the arena, in static storage

  // Returns the current arrays. The view is valid until the placement changes. O(1).
  FxPlacement view() const;
};

// Places the storages of one device in an arena, and places the steps on streams.
//
// With two streams, a collective waits for all earlier steps of the first stream, as in PyTorch. A
// step waits for a collective if it uses a storage that the collective reads, writes or makes.
// Storages and workspace of a collective are kept until the first stream has waited for the
// collective. Their bytes are not reused earlier. The workspace of any other step is in use only
// while the step runs. Steps of another device have no workspace in this placement. device_of()
// determines the device of a step.
//
// O(steps + words), plus plan_arena(). Fails with kUnknownSize in two cases:
// - A storage's size is known before the first step, but depends on a symbol without a value.
// - Sizes are too large.
Result<PlanPlacement> place(const FxPlan& plan, const PlaceOptions& options);

// Returns the devices of the plan's storages, as indices into the plan's strings, in the order of
// their first storage. FX_NONE is included if a storage has no recorded device. O(storages).
std::vector<uint32_t> devices_of(const FxPlan& plan);

}  // namespace fxopt
