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

// The origin of a memory block (TraceBlock).
enum class BlockSource : uint8_t {
  kInput,    // storage of a placeholder or an attribute
  kStorage,  // storage created by a node
  // The next three values are hidden memory: memory that a call takes in addition to its outputs.
  // See HiddenKind.
  kTemporary,
  kWorkspace,
  kPersistent,
  kKept,  // kept between steps: optimizer state, accumulated gradients
};

// Memory of one device that is allocated and freed as a whole.
struct TraceBlock {
  BlockSource source{};
  MemoryClass kind = MemoryClass::kTemporary;
  int64_t bytes = 0;   // above 0
  NodeId node;         // the node that creates the block; for kKept, the parameter or the gradient
  uint32_t first = 0;  // the block is live from `first` to `last`, both included
  uint32_t last = 0;
  BufferId buffer{};  // only for kInput and kStorage
  // A label such as "cublas" or "exp_avg" for blocks that are not storages. The text of the label
  // belongs to the profile or is constant.
  std::string_view label{};
  Evidence evidence = Evidence::kSource;  // the origin of the number in `bytes`; set only for hidden memory
  // For kKept: the index of another block with the same size. If this block is optimizer state, the
  // other block is the parameter. If this block is a kept gradient, the other block is the gradient
  // that one training step creates. After the first step, the kept gradient takes over the memory
  // of the other block.
  uint32_t like = 0;

  bool is_hidden() const {
    return source == BlockSource::kTemporary || source == BlockSource::kWorkspace || source == BlockSource::kPersistent;
  }
};

enum class TraceAction : uint8_t {
  kTake,  // allocates the block
  // The owner drops its last reference to the block. A collective still uses the block, so the
  // block's memory cannot be reused before the block's kFree event, unless an allocation would
  // otherwise fail (replay.h).
  kRelease,
  kFree,  // ends the block's lifetime, so the block's memory can be reused
};

struct TraceEvent {
  uint32_t block = 0;
  TraceAction action = TraceAction::kTake;
};

// How the memory of a collective's operands and outputs is protected from reuse before the
// collective's wait.
enum class CommLifetime : uint8_t {
  kWait,  // the collective holds references until the wait, so operands and outputs stay allocated
  // The owner frees an operand or output after the last node that uses the tensor, even if the wait
  // comes later. Tensor.record_stream() records the collective's stream for the tensor. The
  // tensor's memory therefore cannot be reused before the wait, unless an allocation would
  // otherwise fail.
  kRecordStream,
};

// The state that an optimizer keeps for each parameter with a gradient.
enum class OptimizerState : uint8_t {
  kNone,
  kMomentum,  // SGD: one tensor with the parameter's size
  kAdam,      // Adam and AdamW: two tensors with the parameter's size
};

// The memory that exists at the start of a step after the first.
struct SteadyState {
  // Optimizer state, allocated after the first step. Ignored if the graph's inputs hold optimizer
  // state.
  OptimizerState optimizer = OptimizerState::kAdam;
  // True if each step adds its gradients to the gradients of the previous step. These gradients are
  // then always live. False if gradients are freed before the step begins
  // (zero_grad(set_to_none=True)).
  bool keep_gradients = true;
};

struct TraceOptions {
  // The device profile. It describes the hidden memory: memory that a call takes in addition to its
  // outputs. Must outlive the trace.
  const DeviceProfile* profile = nullptr;
  std::optional<SteadyState> steady;  // set for the trace of a step after the first
  CommLifetime comm = CommLifetime::kWait;
  // For an executor that has its own kernels: workspace bytes of each call, by node id. A call has
  // no workspace if its entry is 0 or missing.
  std::span<const int64_t> workspaces = {};
};

// One device's allocations and frees in the order of eager execution.
//
// Before the first node, memory is allocated in this order: inputs and attributes in schedule
// order, then memory kept between steps.
//
// A node first allocates its temporaries, then its outputs (nested outputs depth first), then its
// workspaces. After the call, it frees its workspaces and temporaries, then the storages that end
// at the node. The storages are freed in the order of the code that torch.fx generates: first the
// node's inputs, in order, and then the outputs without a reader. kRelease events have the same
// order.
//
// No storage is freed at the last node, because the outputs belong to the caller. Storages whose
// lifetime ends at the last node have no kRelease.
struct MemoryTrace {
  StringId device;
  std::vector<TraceBlock> blocks;
  // Blocks allocated before the first node, in the order of allocation.
  std::vector<uint32_t> initial;
  // At each node, all kTake events come before all kRelease and kFree events. A persistent block in
  // `initial` also has a kTake event at the place where the first step allocates the block. In
  // later steps, the block is already allocated, so this event has no effect.
  std::vector<TraceEvent> events;
  // The index of each place's first event. The vector has one entry more than `schedule`.
  std::vector<uint32_t> begins;
  std::vector<NodeId> schedule;
  bool is_steady = false;              // true for the trace of a step after the first
  std::vector<NodeId> unknown_hidden;  // calls whose hidden memory is unknown

  std::span<const TraceEvent> events_at(uint32_t place) const {
    return std::span(events).subspan(begins[place], begins[place + 1] - begins[place]);
  }
};

// Returns the trace of the storages in `memory` that are live on `device`. Storages of unknown size
// are left out. O(nodes + edges + storages + hidden memory).
MemoryTrace trace_memory(const Graph& graph, const StorageMap& storages, const MemoryReport& memory, StringId device,
                         const MemoryOptions& lifetimes, const TraceOptions& options);

// Live bytes at each place of the schedule: after the node's allocations and before its frees.
struct MemoryTimeline {
  std::vector<int64_t> ideal;      // bytes of storages, inputs and memory kept between steps
  std::vector<int64_t> requested;  // the bytes of `ideal` plus hidden memory
};
// Computes the live bytes at each place of the trace. O(places + events).
MemoryTimeline timeline_of(const MemoryTrace& trace);

// Plans an arena for all blocks of the trace. Each block gets an offset before the run. The memory
// pool of a CUDA graph and executors with a static memory plan work in this way. `effort` is
// ArenaOptions::effort. Returns nothing if the sizes exceed an arena's limits. Complexity: as
// plan_arena() in core/arena/arena.h.
std::optional<ArenaPlan> plan_arena(const MemoryTrace& trace, int64_t effort);

// Splits MemoryTimeline::requested by MemoryClass. The vector of a class without blocks is empty.
// O(places * memory classes + events).
std::array<std::vector<int64_t>, kNumMemoryClasses> class_timelines(const MemoryTrace& trace);

// Returns the blocks that are live when the node at `place` uses the most memory. The blocks are
// sorted by size with the largest first, then by TraceBlock::first, then by block number. O(blocks
// log blocks).
std::vector<uint32_t> live_blocks(const MemoryTrace& trace, uint32_t place);

}  // namespace fxopt
