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

// What a live storage is for.
enum class MemoryClass : uint8_t {
  kParameter,
  kBuffer,
  kInput,
  kConstant,
  kOptimizerState,
  kGradient,       // leaves the graph as a gradient
  kSavedValue,     // made in forward, read by backward; in a forward graph: returned for it
  kRecomputed,     // made by a recomputed copy
  kCommunication,  // made by a collective, or empty for one to fill
  kTemporary,
  kWorkspace,  // hidden memory of calls
};
inline constexpr size_t kNumMemoryClasses = 11;
std::string_view memory_class_name(MemoryClass value);

// From where to where a buffer is live, as places in the schedule (Graph::position), both included.
struct Lifetime {
  BufferId buffer;
  uint32_t first = 0;
  uint32_t last = 0;
  int64_t bytes = 0;  // 0 when `known` is false
  bool known = true;  // false: a size depends on a symbol without a value
  MemoryClass kind = MemoryClass::kTemporary;
  uint32_t released = 0;  // where its owner lets it go: before `last` where from there only a collective has it
  // The last place where anything but readers in backward has it: readers in forward, collectives until their wait, the
  // value it is part of while that is taken apart, keep-alive dependencies. And the first reader in backward.
  uint32_t kept = 0;
  uint32_t read_in_backward = kNever;

  static constexpr uint32_t kNever = UINT32_MAX;
};

// Who owns placeholders that are not donated.
enum class InputLifetime : uint8_t {
  kCaller,  // the caller: they are live throughout
  kBoxed,   // the graph, but for parameters, buffers, optimizer state and constants: they end at their last use
};

struct MemoryOptions {
  SymbolValues symbols;  // values for symbols; hints of the module fill in what is missing here
  SymbolRanges ranges;   // narrower ones than the module's; see size_ranges()
  InputLifetime inputs = InputLifetime::kCaller;
  // For the classes, derive what the file does not say: phases by resolve_phases(), and where no placeholder has a
  // role, roles by infer_roles(). Roles are also derived for boxed inputs, on which these depend; else no peak does.
  bool derive_classes = false;
};

// The ideal peak of one device: unrounded bytes of live storages in schedule order. Placeholders and attributes are
// live throughout unless donated (a placeholder after a call, as a composed step has them, from its place on), what the graph returns to the end; a node's inputs and outputs coexist; what a
// collective reads and makes is held until its wait, what a keep-alive dependency names until the node that has it.
// What ends does so behind its last reader, an element of a tuple behind the last getitem of any; a placeholder without
// one stays, as in the code that torch.fx generates.
// Sums are exact up to 2^63 - 1, which also stands for every larger one.
struct DevicePeak {
  StringId device;  // invalid: tensors without a recorded device
  int64_t bytes = 0;
  NodeId node;              // the first node at which the peak is reached
  int64_t input_bytes = 0;  // of placeholders and attributes on this device
};

struct MemoryReport {
  std::vector<DevicePeak> devices;  // largest peak first, ties by name
  bool roles_derived = false;       // see MemoryOptions::derive_classes
  size_t unknown_buffers = 0;       // sizes that could not be evaluated: every peak is then a lower bound
  std::vector<Lifetime> lifetimes;  // all, by BufferId
  std::vector<NodeId> unknown_nodes;
  // Parameters whose gradient leaves the graph, sorted. Where gradients do not name theirs, all parameters, if one
  // does.
  std::vector<BufferId> trained;
  // Of each gradient that leaves the graph the storage of its parameter, sorted; invalid where it is not known.
  std::vector<std::pair<BufferId, BufferId>> gradients;

  // The largest device's peak, 0 for a graph without tensors.
  int64_t peak_bytes() const { return devices.empty() ? 0 : devices.front().bytes; }
};

// `phases`: those of resolve_phases(), where the caller has them. O(nodes + edges + buffers log buffers).
MemoryReport analyze_memory(const Graph& graph, const StorageMap& storages, const MemoryOptions& options = {},
                            const PhaseMap* phases = nullptr);

}  // namespace fxopt
