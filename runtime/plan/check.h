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
  kBadArray,  // null, or more entries than indices can name
  kBadIndex,  // an index or a span beyond its array
  kBadValue,  // an enumerator, flag, count or kind of word that is not legal there
  kBadList,   // contains itself, or is nested more than 64 deep
  kBadGraph,  // contains itself, or is nested more than 64 deep
  kBadCode,   // underflows, or does not leave one value
  kTooLarge,  // arguments share lists so often that the plan takes too long to walk

  // Scalars.
  kScalarOrder,   // code pushes a scalar that is not listed before it
  kScalarReady,   // `ready` differs from the operands, or from the source
  kScalarSource,  // no input has the tensor or the scalar
  kScalarUnmade,  // the step does not produce it
  kScalarLate,    // a step needs it earlier than it is ready

  // Storages and tensors.
  kUnmade,          // read or written before a step makes it
  kLifetime,        // used outside of [first, last], or a lifetime that does not fit its steps
  kFree,            // freed twice, at another step than `last`, or without being the plan's
  kNotFreed,        // neither freed nor returned
  kReturned,        // FX_STORAGE_RETURNED disagrees with the outputs
  kFlags,           // flags disagree with lists
  kSource,          // a source that is not legal here
  kBytesLate,       // the size is known later or earlier than the source says
  kNegative,        // a negative size, stride, offset or number of bytes
  kOutsideStorage,  // a tensor reaches beyond its storage

  // Order.
  kWait,            // waits for a step that begins nothing, or is not earlier
  kBusy,            // uses a buffer of an exchange that has not ended
  kEndsInExchange,  // a buffer ends before the exchange does
  kSequence,
  kSharedTensor,  // an output is an input's tensor, or is_input names another
  kAfter,         // `after` names a step that is not earlier

  // Placements.
  kFaultyPlan,  // check_plan() has the faults: nothing else is checked
  kPlacementSize,
  kStream,
  kEvent,
  kBlock,             // a kind that does not fit the storage, or a range that is not legal
  kBlockSmall,        // fewer bytes than the storage has
  kBlocksOverlap,     // two blocks share bytes while both are in use
  kWorkspaceOverlap,  // the same, and one is a workspace
  kUnordered,         // two streams use one storage and no event orders them
  kLowerBound,
};

inline constexpr size_t kNumPlanFaultKinds = static_cast<size_t>(PlanFaultKind::kLowerBound) + 1;

// "outside-storage".
std::string_view plan_fault_name(PlanFaultKind kind);

// Indices are FX_NONE where the fault is not about one.
struct PlanFault {
  PlanFaultKind kind = PlanFaultKind::kBadVersion;
  uint32_t step = FX_NONE;
  uint32_t storage = FX_NONE;
  uint32_t tensor = FX_NONE;
  uint32_t scalar = FX_NONE;
  std::vector<uint32_t> graphs;  // indices into `graphs`, from the plan that was checked to the one with the fault
  std::string message;           // lower case, no full stop; holds no text of the plan
};

inline constexpr size_t kMaxPlanFaults = 100;

// Every broken rule of a plan and of the graphs it calls, at most kMaxPlanFaults; empty when there is none. Shares no
// code with the planner. Indices, words and numbers may be anything; pointers must be null or hold as many entries as
// their counts say. O(n log n) of everything in the plan.
std::vector<PlanFault> check_plan(const FxPlan& plan);

// The same of a placement of that plan, which may be a graph that another calls.
// O(n log n), times the streams for each event.
std::vector<PlanFault> check_placement(const FxPlan& plan, const FxPlacement& placement);

}  // namespace fxopt
