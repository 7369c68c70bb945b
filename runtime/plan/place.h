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
  uint32_t device = FX_NONE;  // index into the plan's strings; FX_NONE: no recorded device
  // 1: all steps in order on one stream. 2: collectives and messages on a stream of their own.
  uint32_t streams = 1;
  int64_t arena_effort = 20'000'000;  // see ArenaOptions
  ScalarValues::SymbolOf symbols;     // values of symbols; the file's hints fill in the rest
  // values of a run, instead of hints and `symbols`; must outlive the call
  const ScalarValues* values = nullptr;
  // Returns the bytes of workspace that a step's kernel needs, at least 0. Empty: no workspaces.
  std::function<int64_t(uint32_t step)> workspace;
  bool every_device = false;  // place all storages on this device, whatever device is recorded
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
  std::string_view method;  // the method that found the arena; static storage

  // Returns the current arrays; valid until the placement changes. O(1).
  FxPlacement view() const;
};

// Places the storages of one device in an arena, and the steps on streams.
//
// On two streams, a collective waits for everything issued earlier on the first stream, as in the
// framework. A step that uses storages which a collective reads, writes or makes waits for the
// collective. Storages and workspace of a collective are kept until the first stream has waited for
// it, so that no byte is reused earlier. The workspace of any other step lives while the step runs.
// Steps of another device have none: a step belongs to the device of the first storage that it
// makes, writes or reads.
//
// Fails with kUnknownSize if a storage's size is known before the first step and depends on a
// symbol without a value, or if sizes are too large. O(steps + words), plus plan_arena().
Result<PlanPlacement> place(const FxPlan& plan, const PlaceOptions& options);

// Returns the devices of the plan's storages, as indices into its strings, in the order of their
// first storage. Includes FX_NONE if a storage has no device. O(storages).
std::vector<uint32_t> devices_of(const FxPlan& plan);

}  // namespace fxopt
