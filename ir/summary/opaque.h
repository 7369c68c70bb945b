#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"

namespace fxopt {

class EffectMap;

// Why something of a graph is not understood, so that passes must assume the worst of it.
enum class OpaqueReason : uint8_t {
  kNoSchema,        // neither the op table nor the file has a schema for the op
  kPythonFunction,  // the target is a function, no operator: nobody can describe it
  kNotPromised,     // the file has the op's schema, and nobody promises that it has no other effects
  kOtherEffects,    // the op table knows it to have effects that cannot be named
  kRunsUnknown,     // it runs a graph or an operator that is one of the above, or writes
  kMethodOrModule,  // call_method and call_module: what runs depends on the object
  kObject,          // the value is a Python object
  kNoValue,         // nothing was recorded of what the node produces
  kNewerValue,      // the value is of a kind that this build does not know
  kNoStrides,       // a tensor of a layout without strides: no storage can be told
  kUnnamedGroup,    // a collective that does not say on which group it runs
  kUnlistedGroup,   // a collective on a group that the file does not list
};
std::string_view opaque_reason_text(OpaqueReason value);

struct OpaqueRow {
  OpaqueReason reason = OpaqueReason::kNoSchema;
  std::string what;  // the target, the type of the object, the uid of the group
  size_t count = 0;  // nodes
  NodeId first;
};

enum class Validity { kBroken, kValid };

// What of `nodes`, in schedule order, is opaque, most nodes first, ties by the first node. What a call runs is looked
// into by `effects`: nullptr for a broken graph, of which they cannot be asked. O(nodes + arguments + values).
std::vector<OpaqueRow> find_opaque(const Graph& graph, const std::vector<NodeId>& nodes, EffectMap* effects);

}  // namespace fxopt
