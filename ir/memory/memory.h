#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/alias/storages.h"
#include "ir/graph/expr_bounds.h"
#include "ir/graph/graph.h"
#include "ir/graph/module.h"
#include "ir/step/phases.h"

namespace fxopt {

// The purpose of a live storage.
enum class MemoryClass : uint8_t {
  kParameter,
  kBuffer,
  kInput,
  kConstant,
  kOptimizerState,
  kGradient,  // returned as a gradient
  // Created in forward and read by backward. In a forward graph, also a value that is returned for
  // backward.
  kSavedValue,
  kRecomputed,     // created by a copy of a forward node, to recompute its value
  kCommunication,  // created by a collective, or an empty buffer that a collective fills
  kTemporary,
  kWorkspace,  // hidden memory: memory that a call takes in addition to its outputs
};
inline constexpr size_t kNumMemoryClasses = 11;
std::string_view memory_class_name(MemoryClass value);

// The lifetime of a buffer. The buffer is live from place `first` to place `last` of the schedule
// (Graph::position), both included.
struct Lifetime {
  BufferId buffer;
  uint32_t first = 0;
  uint32_t last = 0;
  int64_t bytes = 0;  // 0 if `known` is false
  bool known = true;  // false if a size depends on a symbol without a value
  MemoryClass kind = MemoryClass::kTemporary;
  // The place where the buffer's owner drops its last reference. If a collective still uses the
  // buffer until a later wait, `last` is the place of this wait.
  uint32_t released = 0;
  // The last place where something besides backward readers keeps the buffer live. A buffer is kept
  // live by:
  // - its readers in forward;
  // - collectives until their wait;
  // - the tuple that contains it, until the tuple's last getitem;
  // - keep-alive dependencies.
  uint32_t kept = 0;
  uint32_t read_in_backward = kNever;

  static constexpr uint32_t kNever = UINT32_MAX;
};

// How long placeholders are live. The choice does not apply to donated placeholders, whose lifetime
// ends at their last use. DevicePeak lists exceptions.
enum class InputLifetime : uint8_t {
  kCaller,  // the caller owns placeholders, so they are live in the whole schedule
  // The graph owns placeholders, so the lifetime of a placeholder ends at its last use. However,
  // parameters, buffers, optimizer state and constants are live in the whole schedule.
  kBoxed,
};

struct MemoryOptions {
  SymbolValues symbols;  // values of symbols; the module's hints are used for other symbols
  SymbolRanges ranges;   // ranges that narrow the module's ranges; see size_ranges()
  InputLifetime inputs = InputLifetime::kCaller;
  // Derives memory classes that the file does not record. Phases come from resolve_phases(). If no
  // placeholder has a role, roles come from infer_roles(). If `inputs` is kBoxed, lifetimes and
  // peaks depend on roles, so roles are derived even if this flag is false. If `inputs` is kCaller,
  // peaks do not depend on roles.
  bool derive_classes = false;
};

// The ideal peak of one device: the largest sum of unrounded bytes of live storages when nodes run
// in schedule order.
// - Placeholders and attributes are live in the whole schedule, except donated placeholders.
// - A placeholder that follows a call, as in a composed step, is live from its place in the
//   schedule.
// - Returned storages are live to the end. A node's inputs and outputs are live together.
// - A collective holds its inputs and outputs until its wait.
// - A keep-alive dependency holds its target until the dependent node.
// - An element of a tuple is live until the last getitem of any element.
// - All other storages are freed after their last reader.
// - A placeholder without a reader stays live, as in the code that torch.fx generates.
// - A call may set the size of a storage (inductor.resize_storage_bytes_). The storage then has
//   several separate lifetimes, called stays. The call ends a stay. If the new size is above 0, the
//   next stay begins at the same call.
// - An input that the graph resizes may be empty at first, as in compiled FSDP2. The input counts
//   as empty until the first call that resizes the input, if two conditions hold:
//   - This call sets a size above 0, or an unknown size.
//   - No earlier call reads the data of the input.
//   If one of these conditions does not hold, the input is live before this call as well.
// Sums are exact up to 2^63 - 1. Larger sums are reported as 2^63 - 1.
struct DevicePeak {
  StringId device;  // invalid for tensors without a recorded device
  int64_t bytes = 0;
  NodeId node;              // the first node that reaches the peak
  int64_t input_bytes = 0;  // bytes of placeholders and attributes on this device
};

struct MemoryReport {
  std::vector<DevicePeak> devices;  // sorted by peak, with the largest first, then by name
  bool roles_derived = false;       // see MemoryOptions::derive_classes
  // The number of sizes that could not be evaluated. If this number is above 0, every peak is a
  // lower bound.
  size_t unknown_buffers = 0;
  // Lifetimes of all buffers, by BufferId. If the graph resizes a storage, the storage has several
  // separate lifetimes, called stays (see DevicePeak). This list then has a single Lifetime that
  // covers all stays of the storage. `bytes` of this Lifetime ignores the resizes, see
  // counted_size().
  std::vector<Lifetime> lifetimes;
  std::vector<BufferId> resized;  // storages that the graph resizes, sorted
  // The stays (separate lifetimes, see DevicePeak) of the storages in `resized`. Each stay has its
  // own number of bytes.
  std::vector<Lifetime> stays;
  std::vector<NodeId> unknown_nodes;
  // The parameters whose gradients the graph returns, sorted. If the graph returns gradients but
  // the parameter of every gradient is unknown, the list has all parameters.
  std::vector<BufferId> trained;
  // Pairs of the storage of a returned gradient and the storage of the gradient's parameter,
  // sorted. The parameter's storage is invalid if the parameter is unknown.
  std::vector<std::pair<BufferId, BufferId>> gradients;

  bool is_resized(BufferId id) const;  // O(log resized)
  // Calls `visit(life)` for the lifetimes of storages that the graph does not resize, then for
  // `stays`. O(buffers).
  template <class Visit>
  void for_each_stay(Visit&& visit) const {
    for (const Lifetime& life : lifetimes) {
      if (!is_resized(life.buffer)) visit(life);
    }
    for (const Lifetime& stay : stays) visit(stay);
  }

  // Returns the largest peak of all devices, or 0 for a graph without tensors.
  int64_t peak_bytes() const { return devices.empty() ? 0 : devices.front().bytes; }
};

// Computes the lifetimes of all buffers and the ideal peaks. `phases` is the result of
// resolve_phases(), or nullptr if the caller does not have it.
// O(nodes + edges + buffers log buffers).
MemoryReport analyze_memory(const Graph& graph, const StorageMap& storages, const MemoryOptions& options = {},
                            const PhaseMap* phases = nullptr);

}  // namespace fxopt
