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

// What takes memory in a trace.
enum class BlockSource : uint8_t {
  kInput,      // a placeholder's or an attribute's storage
  kStorage,    // made by a node
  kTemporary,  // hidden memory of a call, see HiddenKind
  kWorkspace,
  kPersistent,
  kKept,  // lives between steps: optimizer state, gradients that are added to
};

// Bytes of one device that are taken and freed as one.
struct TraceBlock {
  BlockSource source{};
  MemoryClass kind = MemoryClass::kTemporary;
  int64_t bytes = 0;                      // above 0
  NodeId node;                            // that makes or takes it; of kept memory the parameter or the gradient's node
  BufferId buffer;                        // of kInput and kStorage
  std::string_view label;                 // of other sources: "cublas", "exp_avg"; the profile's or constant
  Evidence evidence = Evidence::kSource;  // of hidden memory
  uint32_t like = 0;                      // of kept memory: the block it is as large as, and which a gradient took over
  uint32_t first = 0;                     // places in the schedule between which it is live, both included
  uint32_t last = 0;

  bool is_hidden() const {
    return source == BlockSource::kTemporary || source == BlockSource::kWorkspace || source == BlockSource::kPersistent;
  }
};

enum class TraceAction : uint8_t {
  kTake,
  kRelease,  // its owner frees what a collective still works on: not there to be taken before the block's kFree
  kFree,
};

struct TraceEvent {
  uint32_t block = 0;
  TraceAction action = TraceAction::kTake;
};

// How what a collective reads and makes is kept from being taken before its wait.
enum class CommLifetime : uint8_t {
  kWait,          // the collective has references until the wait: it is allocated until then
  kRecordStream,  // the collective's stream is recorded: its owner frees it earlier, and it is pending until the wait
};

// What an optimizer keeps for each parameter with a gradient.
enum class OptimizerState : uint8_t {
  kNone,
  kMomentum,  // SGD: one tensor like the parameter
  kAdam,      // Adam, AdamW: two
};

// What is there when a step begins that is not the first.
struct SteadyState {
  OptimizerState optimizer = OptimizerState::kAdam;  // allocated behind the first step; nothing where the graph's
                                                     // inputs hold optimizer state
  // True: each step adds its gradients to those of the step before, which live throughout. False: they are gone before
  // the step begins (zero_grad(set_to_none=True)).
  bool keep_gradients = true;
};

struct TraceOptions {
  const DeviceProfile* profile = nullptr;  // hidden memory of calls; must outlive the trace
  std::optional<SteadyState> steady;       // the trace is of a step that is not the first
  CommLifetime comm = CommLifetime::kWait;
  // Bytes that an executor's own kernel takes for a call while it runs, by node id; 0, or beyond the end: none.
  std::span<const int64_t> workspaces = {};
};

// One device's allocations and frees in the order of eager execution.
//
// Before the first node: inputs and attributes in schedule order, then what lives between steps. At a node: temporaries
// of the call, its outputs depth first, its workspaces; then, the call having returned, workspaces and temporaries are
// freed, and what ends at the node, as the code that torch.fx generates does: in the order of the node's inputs, last
// what it made and nobody reads. What is released stands among these. At the last node nothing is freed, as the outputs
// go to the caller, and what would be freed there is not released before.
struct MemoryTrace {
  StringId device;
  std::vector<TraceBlock> blocks;
  std::vector<uint32_t> initial;  // blocks that are there before the first node, in the order they were taken
  // At one node all that is taken stands before all that is released or freed. A persistent block of `initial` is taken
  // here, too: where the first step did it.
  std::vector<TraceEvent> events;
  std::vector<uint32_t> begins;  // by place in the schedule, one more than nodes: the first of its events
  std::vector<NodeId> schedule;
  bool is_steady = false;              // of a step that is not the first
  std::vector<NodeId> unknown_hidden;  // calls whose hidden memory cannot be told from the call

  std::span<const TraceEvent> events_at(uint32_t place) const {
    return std::span(events).subspan(begins[place], begins[place + 1] - begins[place]);
  }
};

// The trace of what `memory` says is live on `device`. Storages of unknown size are not in it.
// O(nodes + edges + storages + hidden memory).
MemoryTrace trace_memory(const Graph& graph, const StorageMap& storages, const MemoryReport& memory, StringId device,
                         const MemoryOptions& lifetimes, const TraceOptions& options);

// Bytes live at each place of the schedule, at its fullest: behind what the node takes, before what it frees.
struct MemoryTimeline {
  std::vector<int64_t> ideal;      // storages, inputs, what lives between steps
  std::vector<int64_t> requested;  // with hidden memory
};
// O(places + events).
MemoryTimeline timeline_of(const MemoryTrace& trace);

// An arena for all blocks of the trace: offsets ahead of time, as a planned executor or the pool of a CUDA graph has
// them. `effort`: as ArenaOptions::effort. Nothing when the sizes are beyond what an arena holds. As fast as
// plan_arena().
std::optional<ArenaPlan> plan_arena(const MemoryTrace& trace, int64_t effort);

// The parts of MemoryTimeline::requested by MemoryClass; empty for a class without blocks. O(places * classes +
// events).
std::array<std::vector<int64_t>, kNumMemoryClasses> class_timelines(const MemoryTrace& trace);

// The blocks that are live at `place` at its fullest: largest first, ties by place, then by number. O(blocks log
// blocks).
std::vector<uint32_t> live_blocks(const MemoryTrace& trace, uint32_t place);

}  // namespace fxopt
