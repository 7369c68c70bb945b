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
  uint32_t device = FX_NONE;  // index into the plan's strings; FX_NONE: tensors without a recorded device
  // 1: all steps in their order. 2: collectives and messages on a stream of their own.
  uint32_t streams = 1;
  int64_t arena_effort = 20'000'000;     // see ArenaOptions
  ScalarValues::SymbolOf symbols;        // values of symbols; the file's hints fill in what it does not give
  const ScalarValues* values = nullptr;  // those of a run, in place of both; must outlive the call
  // Bytes that the kernel of a step needs besides its operands, not negative. Empty: none does.
  std::function<int64_t(uint32_t step)> workspace;
  bool every_device = false;  // all storages lie on this device, whatever is recorded of them
  int64_t guard_bytes = 0;    // before and behind each block, which nobody else has
};

// What an FxPlacement points to.
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
  std::string_view method;  // how the arena was found; static storage

  // The arrays as they stand now; good until the placement changes. O(1).
  FxPlacement view() const;
};

// Places the storages of one device in an arena, and the steps on streams.
//
// On two streams a collective waits for all that was issued on the first stream before it, as the framework's does, and a
// step that uses what a collective reads, writes or makes waits for the collective. Storages that a collective uses are
// kept until the first stream has waited for it, so that no byte is used again before. So is the workspace of a collective; that of
// any other step is there while the step runs. Steps of another device have none: a step belongs to the device of the first storage
// that it makes, writes or reads.
//
// Errors: kUnknownSize where the size of a storage is known before the first step and depends on a symbol without a
// value; kTooLarge sizes are kUnknownSize, too. O(steps + words), and what plan_arena() takes.
Result<PlanPlacement> place(const FxPlan& plan, const PlaceOptions& options);

// The devices that storages of the plan are on, as indices into its strings, in the order of their first storage; FX_NONE
// among them where one has none. O(storages).
std::vector<uint32_t> devices_of(const FxPlan& plan);

}  // namespace fxopt
