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
  kGradient,       // returned as a gradient
  kSavedValue,     // made in forward, read by backward; in a forward graph: returned for backward
  kRecomputed,     // made by a recomputed copy
  kCommunication,  // made by a collective, or an empty buffer that one fills
  kTemporary,
  kWorkspace,  // hidden memory of calls
};
inline constexpr size_t kNumMemoryClasses = 11;
std::string_view memory_class_name(MemoryClass value);

// The places in the schedule (Graph::position) between which a buffer is live, both included.
struct Lifetime {
  BufferId buffer;
  uint32_t first = 0;
  uint32_t last = 0;
  int64_t bytes = 0;  // 0 when `known` is false
  bool known = true;  // false: a size depends on a symbol without a value
  MemoryClass kind = MemoryClass::kTemporary;
  // The place where its owner frees it; before `last` if only a collective holds it after that.
  uint32_t released = 0;
  // The last place where it is held for anything but a reader in backward. Holders are readers in
  // forward, collectives until their wait, the tuple that contains it until its last getitem, and
  // keep-alive dependencies. `read_in_backward` is its first reader in backward.
  uint32_t kept = 0;
  uint32_t read_in_backward = kNever;

  static constexpr uint32_t kNever = UINT32_MAX;
};

// The owner of placeholders that are not donated.
enum class InputLifetime : uint8_t {
  kCaller,  // the caller: they are live throughout
  // The graph: they end at their last use, except parameters, buffers, optimizer state and
  // constants.
  kBoxed,
};

struct MemoryOptions {
  SymbolValues symbols;  // values of symbols; the module's hints fill the gaps
  SymbolRanges ranges;   // ranges narrower than the module's; see size_ranges()
  InputLifetime inputs = InputLifetime::kCaller;
  // Derives memory classes that the file does not record. Phases come from resolve_phases(). Roles
  // come from infer_roles(), if no placeholder has one. Boxed inputs depend on roles, so these are
  // derived for them in any case; no other peak depends on roles.
  bool derive_classes = false;
};

// The ideal peak of one device: unrounded bytes of live storages in schedule order.
//   - Placeholders and attributes are live throughout, except donated ones. A placeholder after a
//     call, as in a composed step, is live from its place on.
//   - Returned storages are live to the end. A node's inputs and outputs coexist.
//   - A collective holds its inputs and outputs until its wait. A keep-alive dependency holds its
//     target until the dependent node.
//   - Other storages end after their last reader, tuple elements after the last getitem of any
//     element. A placeholder without a reader stays, as in the code that torch.fx generates.
// Sums are exact up to 2^63 - 1; larger sums are reported as 2^63 - 1.
struct DevicePeak {
  StringId device;  // invalid: tensors without a recorded device
  int64_t bytes = 0;
  NodeId node;              // the first node that reaches the peak
  int64_t input_bytes = 0;  // placeholders and attributes on this device
};

struct MemoryReport {
  std::vector<DevicePeak> devices;  // largest peak first, ties by name
  bool roles_derived = false;       // see MemoryOptions::derive_classes
  // Number of sizes that could not be evaluated. If above 0, every peak is a lower bound.
  size_t unknown_buffers = 0;
  std::vector<Lifetime> lifetimes;  // all, by BufferId
  std::vector<NodeId> unknown_nodes;
  // Parameters whose gradients the graph returns, sorted. If no gradient names its parameter but
  // the graph returns one, all parameters.
  std::vector<BufferId> trained;
  // Each returned gradient's storage with its parameter's storage, sorted. Invalid if the parameter
  // is unknown.
  std::vector<std::pair<BufferId, BufferId>> gradients;

  // The largest device's peak; 0 for a graph without tensors.
  int64_t peak_bytes() const { return devices.empty() ? 0 : devices.front().bytes; }
};

// `phases`: the result of resolve_phases(), if the caller has it.
// O(nodes + edges + buffers log buffers).
MemoryReport analyze_memory(const Graph& graph, const StorageMap& storages, const MemoryOptions& options = {},
                            const PhaseMap* phases = nullptr);

}  // namespace fxopt
