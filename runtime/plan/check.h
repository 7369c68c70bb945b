#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi/plan.h"

namespace fxopt {

// The rule that a plan or a placement breaks. Names (plan_fault_name()) are stable.
enum class PlanFaultKind : uint8_t {
  // Structure. The other rules are checked only for a plan without these.
  kBadVersion,
  kBadArray,  // null, or more entries than indices can address
  kBadIndex,  // an index or a span beyond its array
  kBadValue,  // an enumerator, flag, count or kind of word that is illegal there
  kBadList,   // contains itself, or is nested more than 64 deep
  kBadGraph,  // contains itself, or is nested more than 64 deep
  kBadCode,   // underflows, or does not leave one value
  kTooLarge,  // arguments share lists so often that walking the plan would take too long

  // Scalars.
  kScalarOrder,   // code pushes a scalar that is not listed before it
  kScalarReady,   // `ready` differs from the operands, or from the source
  kScalarSource,  // no input has the tensor or the scalar
  kScalarUnmade,  // the step does not produce it
  kScalarLate,    // a step needs it earlier than it is ready

  // Storages and tensors.
  kUnmade,          // read or written before a step makes it
  kLifetime,        // used outside of [first, last], or a lifetime that does not fit its steps
  kFree,            // freed twice, freed at a step other than `last`, or freed although it is not the plan's storage
  kNotFreed,        // neither freed nor returned
  kReturned,        // FX_STORAGE_RETURNED disagrees with the outputs
  kFlags,           // flags disagree with lists
  kSource,          // a source that is illegal here
  kBytesLate,       // the size is known later or earlier than the source allows
  kNegative,        // a negative size, stride, offset or number of bytes
  kOutsideStorage,  // a tensor reaches beyond its storage

  // Order.
  kWait,            // waits for a step that starts no exchange, or is not earlier
  kBusy,            // uses a buffer of an exchange that has not ended
  kEndsInExchange,  // a buffer ends before the exchange does
  kSequence,
  kSharedTensor,  // an output is an input's tensor, or is_input names another
  kAfter,         // `after` names a step that is not earlier

  // Placements.
  kFaultyPlan,  // check_plan() reports faults: nothing else is checked
  kPlacementSize,
  kStream,
  kEvent,
  kBlock,             // a kind that does not fit the storage, or an illegal range
  kBlockSmall,        // fewer bytes than the storage has
  kBlocksOverlap,     // two blocks share bytes while both are in use
  kWorkspaceOverlap,  // the same, and one block is a workspace
  kUnordered,         // two streams use one storage and no event orders them
  kLowerBound,
};

inline constexpr size_t kNumPlanFaultKinds = static_cast<size_t>(PlanFaultKind::kLowerBound) + 1;

// "outside-storage".
std::string_view plan_fault_name(PlanFaultKind kind);

// Indices are FX_NONE if they do not apply to the fault.
struct PlanFault {
  PlanFaultKind kind = PlanFaultKind::kBadVersion;
  uint32_t step = FX_NONE;
  uint32_t storage = FX_NONE;
  uint32_t tensor = FX_NONE;
  uint32_t scalar = FX_NONE;
  // indices into `graphs`, from the checked plan to the plan with the fault
  std::vector<uint32_t> graphs;
  std::string message;  // lower case, no full stop; holds no text of the plan
};

inline constexpr size_t kMaxPlanFaults = 100;

// Returns every broken rule of a plan and of the graphs it calls, at most kMaxPlanFaults. Shares no
// code with the planner. Indices, words and numbers may be anything. Pointers must be null or have
// as many entries as their counts state. O(n log n) for everything in the plan.
std::vector<PlanFault> check_plan(const FxPlan& plan);

// Returns the same for a placement of that plan, which may be a graph that another calls. O(n log
// n), times the streams for each event.
std::vector<PlanFault> check_placement(const FxPlan& plan, const FxPlacement& placement);

}  // namespace fxopt
