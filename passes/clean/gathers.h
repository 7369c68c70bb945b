#pragma once

#include <cstdint>
#include <string_view>

#include "core/result.h"
#include "passes/clean/cse.h"
#include "passes/pass/context.h"
#include "passes/pass/pass.h"

// Merges equal all-gathers of parameters, with the equality proof of cse.

namespace fxopt {

// Classes for cse_within(), which merges nodes of equal class. Every node outside of a parameter
// gather has its own.
struct GatherClasses {
  IdMap<NodeId, uint32_t> of;
  IdMap<NodeId, bool> is_part;  // calls between a parameter's shard and its full layout
  uint32_t next = 0;            // the first class that no node has
};
enum class GatheredInputs : uint8_t {
  kParameters,
  kAll,  // any input
};
// O(nodes + edges).
GatherClasses gather_classes(const Graph& graph, Facts& facts, GatheredInputs inputs, bool across_phases);
CseOptions equal_gathers();

// Merges equal gathers of a parameter within forward and within backward. With `across`, a backward
// gather also merges into an equal value that forward saves. Nodes that lose their last user are
// erased and recorded for `pass`.
//
// Counters: gathers-merged (calls, casts and waits among them). O(nodes + edges).
Result<PassResult> merge_gathers(Graph& graph, bool across, PassContext& context, std::string_view pass);

// Remarks (gather-apart) on each repeated gather of a parameter in one half. Also on each gather of
// backward if forward saves a value of the same parameter's gather. Each gives the reason why it
// was not merged: another operator, group, stream, type or input, a write in between or later, a
// control dependency, both returned, arguments spelled differently, a bucket with other members, a
// saved value of another layout, not proved equal. One warning (gathers-apart) counts them by
// reason. Notes: gathers-apart. O(nodes + edges).
void remark_gathers_apart(const Graph& graph, Facts& facts, PassResult& result);

}  // namespace fxopt
