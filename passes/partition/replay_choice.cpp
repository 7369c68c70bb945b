// Saves the values that an earlier compilation marked with `ap_must_save` (ir/step/marks.h).

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph/module.h"
#include "ir/step/replay.h"
#include "passes/partition/choice.h"
#include "passes/pass/refusal.h"

namespace fxopt {
namespace {

// Backward nodes may carry the marks of forward nodes. A mark that no forward node carries is an
// error, as that value cannot be saved.
std::optional<Error> check(const Graph& graph, const MarkMap& marks) {
  if (marks.in_backward_alone.is_valid()) {
    const NodeId node = marks.in_backward_alone;
    return refused(graph, node,
                   quoted(graph, node) + " of backward has the mark of the saved value '" +
                       std::string(graph.module().text(read_mark(graph, node).name)) +
                       "', but no forward node has this mark",
                   "compute the value in forward, or remove its mark (ap_must_save)");
  }
  if (!marks.values.empty() || std::ranges::any_of(graph.module().erased, &ErasedNode::is_mark)) return std::nullopt;
  if (marks.without_getitem.is_valid()) {
    return refused(graph, marks.without_getitem,
                   quoted(graph, marks.without_getitem) +
                       " has the mark ap_must_save_getitem_indices, but no getitem reads the marked results. No other "
                       "forward value is marked",
                   "the marks belong to another graph: use the marks of this model's first compilation");
  }
  return refused(graph, NodeId(), "no forward value is marked (ap_must_save)",
                 "run the first partition with mark-saved=true, and keep `custom` in the trace (`fxopt help marks`)");
}

}  // namespace

Result<Choice> choose_marked(const Graph& graph, Facts& facts, PreferRecompute prefer) {
  Replay replay = replay_marks(graph, facts, prefer);
  const MarkMap& marks = replay.decisions.marks;
  if (std::optional<Error> error = check(graph, marks)) return *std::move(error);
  Choice choice;
  choice.num_marked = marks.num_names;
  choice.num_lost = marks.num_lost;
  choice.decisions = std::move(replay.decisions);
  choice.decisions.wanted = "is not marked (ap_must_save)";
  choice.decisions.remedy = "mark this value (ap_must_save), or let the partition of the first compilation save it";
  return choice;
}

}  // namespace fxopt
