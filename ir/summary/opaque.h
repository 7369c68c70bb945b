#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"

namespace fxopt {

class EffectMap;

// The reason why the effects, value, storage or group of a node are unknown. Passes must then
// assume the worst.
enum class OpaqueReason : uint8_t {
  kNoSchema,        // neither the op table nor the file has a schema for the operator
  kPythonFunction,  // the target is a Python function, for which no schema can exist
  // The file has a schema for the operator, but does not promise that the operator has no other
  // effects.
  kNotPromised,
  kOtherEffects,  // the op table lists the operator with unspecified effects
  // The call runs a graph or another operator, and at least one of these conditions holds:
  // - The graph is unknown, or calls itself.
  // - The graph writes memory, or contains a call with unknown effects.
  // - The operator has unknown effects.
  // - The operator draws random numbers, and auto_functionalized runs the operator.
  kRunsUnknown,
  kMethodOrModule,  // a call_method or call_module, whose code depends on the object
  kObject,          // the value is a Python object
  kNoValue,         // no value was recorded for the node
  kNewerValue,      // this build does not know the kind of the value
  kNoStrides,       // the tensor's layout has no strides, so its storage is unknown
  kUnnamedGroup,    // the collective has no group name
  kUnlistedGroup,   // the collective is on a group that the file does not list
};
std::string_view opaque_reason_text(OpaqueReason value);

struct OpaqueRow {
  OpaqueReason reason = OpaqueReason::kNoSchema;
  std::string what;  // the target, the type of the object, or the uid of the group
  size_t count = 0;  // number of nodes
  NodeId first;
};

enum class Validity { kBroken, kValid };

// Returns the nodes of `nodes` that are not understood, grouped by reason and by OpaqueRow::what.
// `nodes` must be in schedule order. Rows with more nodes come first. Rows with equal numbers of
// nodes are sorted by their first node. `effects` finds the effects of subgraphs and operators that
// a call runs. `effects` is nullptr for a broken graph, whose effects are unknown. O(nodes +
// arguments + values).
std::vector<OpaqueRow> find_opaque(const Graph& graph, const std::vector<NodeId>& nodes, EffectMap* effects);

}  // namespace fxopt
