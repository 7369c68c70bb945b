#pragma once

#include <cstdint>
#include <string_view>

#include "core/result.h"
#include "passes/clean/cse.h"
#include "passes/pass/context.h"
#include "passes/pass/pass.h"

// Merges equal all-gathers of parameters, with the equality proof of the pass `cse`.

namespace fxopt {

// Classes of nodes for cse_within(), which merges equal nodes of one class. Each node that is not
// part of a parameter gather is the only node of its class.
struct GatherClasses {
  IdMap<NodeId, uint32_t> of;
  IdMap<NodeId, bool> is_part;  // whether the call is on the way from a shard to the full parameter
  uint32_t next = 0;            // the first unused class
};
enum class GatheredInputs : uint8_t {
  kParameters,
  kAll,  // any input
};
// O(nodes + edges).
GatherClasses gather_classes(const Graph& graph, Facts& facts, GatheredInputs inputs, bool across_phases);
CseOptions equal_gathers();

// Merges equal gathers of a parameter within forward and within backward. If `across` is true, a
// backward gather is also merged into an equal forward value that backward reads. Erases gather
// nodes that lose their last user, and records that `pass` erased them.
//
// Counters: gathers-merged (merged nodes: calls, casts and waits). Complexity: O(nodes + edges).
Result<PassResult> merge_gathers(Graph& graph, bool across, PassContext& context, std::string_view pass);

// Writes a remark (gather-apart) on each gather that repeats an earlier gather of the same
// parameter within forward or within backward. Also writes the remark on a backward gather if
// forward saves a value that was gathered from the same parameter. The remark gives the reason why
// the gather was not merged:
// - the operator, group, stream, type or input differs
// - a node between the two gathers writes to the input
// - a node writes in place to the result of either gather
// - the gather has a control dependency or an event
// - the graph returns both results
// - the arguments are equal but written differently
// - one gather is a bucket that gathers other parameters as well
// - forward saves another layout of the parameter
// - the two gathers are not proved equal
//
// If at least one gather gets this remark, the function also writes one warning (gathers-apart).
// The text of the warning contains the number of these gathers for each reason. In addition,
// PassResult::notes() contains the total number of these gathers, under the name gathers-apart.
// Complexity: O(nodes + edges).
void remark_gathers_apart(const Graph& graph, Facts& facts, PassResult& result);

}  // namespace fxopt
