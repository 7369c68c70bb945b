#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi/plan.h"

namespace fxopt {

// The rule that a plan or a placement breaks. The names that plan_fault_name() returns are stable.
enum class PlanFaultKind : uint8_t {
  // Faults of structure. If a plan has one of these faults, the rules below are not checked.
  kBadVersion,
  kBadArray,  // an array is null, or has more entries than indices can address
  kBadIndex,  // an index or a span is beyond its array
  // A field has an illegal value, for example:
  // - an unknown enumerator or flag
  // - a word (FxWord) of the wrong kind
  // - a value of FxScalar::ready above the number of steps in the plan
  kBadValue,
  kBadList,   // a list contains itself, or is nested more than 64 deep
  kBadGraph,  // a graph contains itself, or is nested more than 64 deep
  kBadCode,   // scalar code underflows its stack, or does not leave exactly one value
  // Steps, outputs and scalars refer to the same entries so often that a check would take too long.
  // A check visits an entry once for each way that leads to it, for example through nested lists.
  kTooLarge,

  // Faults of scalars (FxScalar).
  kScalarOrder,   // a scalar's code uses a scalar that is not earlier in the plan's list
  kScalarReady,   // FxScalar::ready contradicts the scalar's operands or source
  kScalarSource,  // no input or caller provides the scalar
  kScalarUnmade,  // the step that must produce the scalar does not produce it
  kScalarLate,    // a step needs the scalar before the scalar's value is known

  // Faults of storages and tensors.
  kUnmade,    // a storage is read or written before it exists
  kLifetime,  // a storage is used outside its lifetime, or the recorded lifetime is wrong
  kFree,      // the wrong storage is freed, or a storage is freed twice or at the wrong step
  kNotFreed,  // a storage is neither freed nor returned
  kReturned,  // FX_STORAGE_RETURNED contradicts the outputs
  kFlags,     // a step's flags contradict its fields, or FX_STORAGE_WRITTEN is wrong
  kSource,    // a storage's FxSource is illegal in this plan
  // A storage's size becomes known at a time that FxStorage::source does not allow. Three cases:
  // - The source is FX_SOURCE_PLANNED, but the size is not known before the first step.
  // - The source is FX_SOURCE_LATE, but the size is known before the first step.
  // - The source is FX_SOURCE_LATE, but the size becomes known only after a step that runs later
  //   than the step that makes the storage.
  kBytesLate,
  kNegative,        // a size, stride, offset or number of bytes is negative
  kOutsideStorage,  // a tensor reaches beyond its storage

  // Faults of order. A collective or a message is an exchange, which begins with the step that
  // starts it and ends with the last step that waits for it.
  kWait,            // a step waits for a step that is not earlier, or for a step that starts no collective or message
  kBusy,            // a step uses a buffer of a collective or message that has not ended
  kEndsInExchange,  // a buffer's lifetime ends before its collective or message ends
  kSequence,
  // The field FxOutput::is_input of an output is wrong. The field must be the index in
  // FxPlan::inputs if the output is an input, else FX_NONE. This kind covers two faults:
  // - The field is an index, but the output's value is not the value of the input at this index.
  // - The field is FX_NONE, but an input has the same tensor as the output.
  kSharedTensor,
  kAfter,  // an entry of the step's list `after` is not an earlier step

  // Faults of placements.
  kFaultyPlan,  // check_plan() reports faults, so the placement is not checked
  kPlacementSize,
  kStream,
  kEvent,
  kBlock,             // a block has the wrong kind for its storage, or an illegal range
  kBlockSmall,        // a block has fewer bytes than its storage
  kBlocksOverlap,     // two blocks share bytes while both are in use
  kWorkspaceOverlap,  // the same as kBlocksOverlap, but one of the blocks is a workspace
  kUnordered,         // two streams use one storage, and no event orders the uses
  kLowerBound,
};

inline constexpr size_t kNumPlanFaultKinds = static_cast<size_t>(PlanFaultKind::kLowerBound) + 1;

// Returns the name of a kind, such as "outside-storage".
std::string_view plan_fault_name(PlanFaultKind kind);

// One fault of a plan or a placement. An index is FX_NONE if it does not apply to the fault.
struct PlanFault {
  PlanFaultKind kind = PlanFaultKind::kBadVersion;
  uint32_t step = FX_NONE;
  uint32_t storage = FX_NONE;
  uint32_t tensor = FX_NONE;
  uint32_t scalar = FX_NONE;
  // Indices into FxPlan::graphs that lead from the checked plan to the plan with the fault.
  std::vector<uint32_t> graphs;
  std::string message;  // in lower case, without a full stop, and without text from the plan
};

inline constexpr size_t kMaxPlanFaults = 100;

// Returns the faults of a plan and of the graphs that the plan calls. Returns at most
// kMaxPlanFaults faults. The checker shares no code with the planner. The plan may be damaged: all
// fields and array entries except pointers may have any value. A pointer must be null, or point to
// as many entries as its count states. O(n log n), where n is the size of the plan.
std::vector<PlanFault> check_plan(const FxPlan& plan);

// Returns the faults of a placement of the plan. Returns at most kMaxPlanFaults faults. The plan
// may be a graph that another graph calls. O(n log n), plus O(streams) for each event.
std::vector<PlanFault> check_placement(const FxPlan& plan, const FxPlacement& placement);

}  // namespace fxopt
