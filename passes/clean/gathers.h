#pragma once

#include <cstdint>
#include <string_view>

#include "core/result.h"
#include "passes/clean/cse.h"
#include "passes/pass/context.h"
#include "passes/pass/pass.h"

// All-gathers of parameters that are equal become one, by the proof that cse uses.

namespace fxopt {

// Which nodes cse_within() may merge: nodes of one class. Each node outside of gathers of parameters has a class of its own.
struct GatherClasses {
  IdMap<NodeId, uint32_t> of;
  IdMap<NodeId, bool> is_part;  // calls on the way from a parameter's shard to what lays out the whole parameter
  uint32_t next = 0;            // the first class that no node has
};
enum class GatheredInputs : uint8_t {
  kParameters,
  kAll,  // whatever is gathered, asked of no input
};
// O(nodes + edges).
GatherClasses gather_classes(const Graph& graph, Facts& facts, GatheredInputs inputs, bool across_phases);
CseOptions equal_gathers();

// Merges equal gathers of one parameter within forward and within backward. With `across`, gathers of backward also become values that
// forward saves: that backward reads already. What nobody reads any more goes, into the ledger of `pass`.
//
// Counters: gathers-merged (calls, casts and waits among them). O(nodes + edges).
Result<PassResult> merge_gathers(Graph& graph, bool across, PassContext& context, std::string_view pass);

// Remarks, code gather-apart, on each gather of a parameter's shard that the same half gathers already, with the reason: another group,
// stream, type or part of the parameter, or a write between the two; and one warning with their number by reason. Notes: gathers-apart.
// O(nodes + edges).
void remark_gathers_apart(const Graph& graph, Facts& facts, PassResult& result);

}  // namespace fxopt
