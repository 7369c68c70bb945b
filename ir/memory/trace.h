#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/arena/arena.h"
#include "ir/alias/storages.h"
#include "ir/device/profile.h"
#include "ir/graph/graph.h"
#include "ir/memory/memory.h"

namespace fxopt {

// The origin of a block.
enum class BlockSource : uint8_t {
  kInput,      // storage of a placeholder or an attribute
  kStorage,    // storage made by a node
  kTemporary,  // hidden memory of a call, see HiddenKind
  kWorkspace,
  kPersistent,
  kKept,  // kept between steps: optimizer state, gradients that are added to
};

// Memory of one device that is allocated and freed as a whole.
struct TraceBlock {
  BlockSource source{};
  MemoryClass kind = MemoryClass::kTemporary;
  int64_t bytes = 0;  // above 0
  NodeId node;        // its maker; for kKept the node of the parameter or the gradient
  BufferId buffer;    // for kInput and kStorage
  // For other sources: "cublas", "exp_avg". Owned by the profile, or constant.
  std::string_view label;
  Evidence evidence = Evidence::kSource;  // for hidden memory
  // For kKept: the block of the same size. A kept gradient takes its place after the first step.
  uint32_t like = 0;
  uint32_t first = 0;  // the places in the schedule between which it is live, both included
  uint32_t last = 0;

  bool is_hidden() const {
    return source == BlockSource::kTemporary || source == BlockSource::kWorkspace || source == BlockSource::kPersistent;
  }
};

enum class TraceAction : uint8_t {
  kTake,
  kRelease,  // its owner frees it while a collective still uses it: reusable only after its kFree
  kFree,
};

struct TraceEvent {
  uint32_t block = 0;
  TraceAction action = TraceAction::kTake;
};

// The way in which operands and outputs of a collective are kept from reuse before its wait.
enum class CommLifetime : uint8_t {
  kWait,  // the collective holds references until the wait, so they stay allocated
  // Recorded on the collective's stream: the owner frees them earlier, pending until the wait.
  kRecordStream,
};

// The state that an optimizer keeps for each parameter with a gradient.
enum class OptimizerState : uint8_t {
  kNone,
  kMomentum,  // SGD: one tensor of the parameter's size
  kAdam,      // Adam, AdamW: two such tensors
};

// Memory at the start of a step after the first.
struct SteadyState {
  // Allocated after the first step. None if the graph's inputs hold optimizer state.
  OptimizerState optimizer = OptimizerState::kAdam;
  // True: each step adds its gradients to those of the previous step, which live throughout. False:
  // they are freed before the step begins (zero_grad(set_to_none=True)).
  bool keep_gradients = true;
};

struct TraceOptions {
  const DeviceProfile* profile = nullptr;  // for hidden memory of calls; must outlive the trace
  std::optional<SteadyState> steady;       // if set, the trace is of a step after the first
  CommLifetime comm = CommLifetime::kWait;
  // Workspace bytes of an executor's own kernel for a call, by node id. None for 0 or beyond the
  // end.
  std::span<const int64_t> workspaces = {};
};

// One device's allocations and frees in the order of eager execution.
//
// Before the first node: inputs and attributes in schedule order, then memory kept between steps.
// At a node: the call's temporaries, its outputs depth first, its workspaces. After the call, its
// workspaces and temporaries are freed, then the storages that end at the node, as in the code that
// torch.fx generates: in the order of the node's inputs, then outputs without a reader. A kRelease
// is in the same order. At the last node no storage is freed, since the outputs go to the caller,
// and storages that would end there are not released earlier.
struct MemoryTrace {
  StringId device;
  std::vector<TraceBlock> blocks;
  std::vector<uint32_t> initial;  // allocated before the first node, in the order of allocation
  // At one node all kTake events come before all kRelease and kFree events. A persistent block of
  // `initial` also has a kTake where the first step allocated it.
  std::vector<TraceEvent> events;
  // By place in the schedule: its first event; one entry more than nodes.
  std::vector<uint32_t> begins;
  std::vector<NodeId> schedule;
  bool is_steady = false;              // the trace is of a step after the first
  std::vector<NodeId> unknown_hidden;  // calls whose hidden memory is unknown

  std::span<const TraceEvent> events_at(uint32_t place) const {
    return std::span(events).subspan(begins[place], begins[place + 1] - begins[place]);
  }
};

// Returns the trace of the storages in `memory` that are live on `device`. Leaves out storages of
// unknown size. O(nodes + edges + storages + hidden memory).
MemoryTrace trace_memory(const Graph& graph, const StorageMap& storages, const MemoryReport& memory, StringId device,
                         const MemoryOptions& lifetimes, const TraceOptions& options);

// Bytes live at each place of the schedule at its fullest: after the node's allocations, before its
// frees.
struct MemoryTimeline {
  std::vector<int64_t> ideal;      // storages, inputs, memory kept between steps
  std::vector<int64_t> requested;  // with hidden memory
};
// O(places + events).
MemoryTimeline timeline_of(const MemoryTrace& trace);

// Plans an arena for all blocks of the trace: offsets ahead of time, as in a planned executor or
// the pool of a CUDA graph. `effort`: ArenaOptions::effort. Returns nothing if the sizes exceed an
// arena's limits. Takes the time of plan_arena() in core/arena/arena.h.
std::optional<ArenaPlan> plan_arena(const MemoryTrace& trace, int64_t effort);

// Splits MemoryTimeline::requested by MemoryClass; empty for a class without blocks.
// O(places * classes + events).
std::array<std::vector<int64_t>, kNumMemoryClasses> class_timelines(const MemoryTrace& trace);

// Returns the blocks live at `place` at its fullest: largest first, ties by first place, then by
// number. O(blocks log blocks).
std::vector<uint32_t> live_blocks(const MemoryTrace& trace, uint32_t place);

}  // namespace fxopt
