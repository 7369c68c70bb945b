#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"

namespace fxopt {

class EffectMap;

// The reason why a piece of a graph is not understood, so that passes must assume the worst.
enum class OpaqueReason : uint8_t {
  kNoSchema,        // neither the op table nor the file has a schema for the op
  kPythonFunction,  // the target is a Python function, not an operator: no schema exists for it
  // The file has the op's schema, but does not promise that it has no other effects.
  kNotPromised,
  kOtherEffects,    // the op table lists it with effects that cannot be named
  kRunsUnknown,     // runs a graph or an operator that is opaque or writes
  kMethodOrModule,  // call_method or call_module: the executed code depends on the object
  kObject,          // the value is a Python object
  kNoValue,         // no value was recorded for the node
  kNewerValue,      // this build does not know the kind of the value
  kNoStrides,       // a tensor of a layout without strides: its storage is unknown
  kUnnamedGroup,    // a collective that names no group
  kUnlistedGroup,   // a collective on a group that the file does not list
};
std::string_view opaque_reason_text(OpaqueReason value);

struct OpaqueRow {
  OpaqueReason reason = OpaqueReason::kNoSchema;
  std::string what;  // the target, the type of the object, or the uid of the group
  size_t count = 0;  // number of nodes
  NodeId first;
};

enum class Validity { kBroken, kValid };

// Returns the opaque content of `nodes`, which must be in schedule order. Rows with more nodes come
// first, ties by the first node. `effects` finds the effects of subgraphs and operators that a call
// runs; nullptr for a broken graph, whose effects are unknown. O(nodes + arguments + values).
std::vector<OpaqueRow> find_opaque(const Graph& graph, const std::vector<NodeId>& nodes, EffectMap* effects);

}  // namespace fxopt
