// Splits a joint graph into a forward and a backward graph.
//
//   graph @main {kind=joint}              graph @forward {kind=forward}
//     %x = placeholder()                    %x = placeholder()
//     %d = placeholder() {role=tangent}     %a = exp(%x)
//     %a = exp(%x)                    =>    return (%a, %a)
//     %g = mul(%d, %a)                    graph @backward {kind=backward}
//     return (%a, %g)                       %a = placeholder() {role=saved_value,
//                                                               saved_from_output=1}
//                                           %d = placeholder() {role=tangent}
//                                           %g = mul(%d, %a)
//                                           return (%g,)
//
// Choosing, copying and cutting are separate steps, so a further mode needs only another choice.
// Tags or a minimal cut choose the values that backward recomputes (choice.h). `remat` copies these
// values within the joint graph, where the copying can be proved and measured separately. split.h
// cuts between the phases.

#include "passes/partition/partition.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/hash_table.h"
#include "core/text.h"
#include "ir/graph/top_level.h"
#include "ir/step/infer_roles.h"
#include "ir/step/marks.h"
#include "ir/step/phases.h"
#include "ir/step/tags.h"
#include "ir/values/values.h"
#include "passes/clean/cse.h"
#include "passes/clean/dce.h"
#include "passes/clean/raise_getitems.h"
#include "passes/partition/carry_out.h"
#include "passes/partition/choice.h"
#include "passes/partition/split.h"
#include "passes/pass/refusal.h"
#include "passes/pass/replacer.h"
#include "passes/recompute/remat.h"

namespace fxopt {
namespace {

constexpr std::string_view kPartition = "partition";

// Whether the graph is recorded as joint and all its gradients are None, because no input requires
// a gradient.
bool has_no_gradients(const Graph& graph) {
  if (graph.kind != GraphKind::kJoint || !graph.num_forward_outputs.has_value()) return false;
  const std::vector<NodeId> leaves = output_leaves(graph);
  const auto count = static_cast<int64_t>(leaves.size());
  const int64_t first = std::clamp<int64_t>(*graph.num_forward_outputs, 0, count);
  return std::none_of(leaves.begin() + first, leaves.end(), [](NodeId leaf) { return leaf.is_valid(); });
}

struct Joint {
  GraphId graph;                 // invalid: the module already is a forward and a backward graph
  std::vector<NodeId> tangents;  // inferred tangents, to be recorded
};

Result<Joint> find_joint(const Module& module, PassContext& context) {
  Joint joint;
  bool has_backward = false;
  size_t others = 0;
  for (const GraphId id : top_level_graphs(module)) {
    const Graph& graph = module.graph(id);
    has_backward = has_backward || graph.kind == GraphKind::kBackward;
    others += graph.kind == GraphKind::kForward || graph.kind == GraphKind::kBackward ? 1 : 0;
    const bool has_tangents =
        std::ranges::any_of(graph.nodes(), [&graph](NodeId node) { return is_tangent(graph, node); });
    std::vector<NodeId> tangents;
    if (!has_tangents) tangents = infer_tangents(graph, context.facts.of(graph).storages());
    if (has_tangents ? !is_joint(graph) : tangents.empty() && !has_no_gradients(graph)) continue;
    if (joint.graph.is_valid()) {
      return refused(graph, NodeId(),
                     "'" + std::string(module.text(module.graph(joint.graph).name())) + "' and '" +
                         std::string(module.text(graph.name())) + "' are both joint graphs",
                     "partition a file with only one joint graph");
    }
    joint = {id, std::move(tangents)};
  }
  if (joint.graph.is_valid() && others > 0) {
    return refused(module.graph(joint.graph), NodeId(),
                   "besides the joint graph, the file has " + count_text(others, "forward or backward graph"),
                   "partition the joint graph by itself");
  }
  if (joint.graph.is_valid() && module.invocations.size() > 1) {
    return refused(module.graph(joint.graph), NodeId(),
                   "the module runs its graphs " + std::to_string(module.invocations.size()) + " times in a step",
                   "partition the joint graph by itself");
  }
  if (joint.graph.is_valid() || has_backward) return joint;
  const bool is_whole = module.main().kind == GraphKind::kForwardLossBackward;
  return refused(
      module.main(), NodeId(), "no graph of this module is joint: no input is a tangent",
      is_whole ? "partition cannot cut a graph that contains forward, loss and backward. To carry out its tags, use "
                 "remat"
               : "trace the joint graph (aot_export_joint_with_descriptors), or set the role of its tangent "
                 "inputs to `tangent`");
}

// PyTorch's fx_graph_cse merges only nodes of one class. Nodes that gradients need are one class,
// and other nodes are another. Each node on the memory of an output, and each uninitialized tensor,
// has its own class.
IdMap<NodeId, uint32_t> classes_of_torch(const Graph& graph, const StorageMap& storages, size_t num_forward_outputs) {
  constexpr uint32_t kNeeded = 1, kFirstOwn = 2;
  IdMap<NodeId, uint32_t> classes(graph.num_ids(), 0);
  IdMap<BufferId, bool> is_returned(storages.num_buffers(), false);
  const std::vector<NodeId> leaves = output_leaves(graph);
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!leaves[i].is_valid()) continue;
    if (i >= num_forward_outputs) classes[leaves[i]] = kNeeded;
    for (const BufferId id : storages.buffers(leaves[i])) {
      if (id.is_valid()) is_returned[id] = true;
    }
  }
  for (NodeId node = graph.last(); node.is_valid(); node = graph.prev(node)) {
    if (classes[node] != kNeeded) continue;
    graph.for_each_input(node, [&](NodeId input) { classes[input] = kNeeded; });
  }
  uint32_t next = kFirstOwn;
  for (const NodeId node : graph.nodes()) {
    const std::span<const BufferId> made = storages.buffers(node);
    const bool is_output =
        graph.value(node).kind == ValueKind::kTensor && made.size() == 1 && made[0].is_valid() && is_returned[made[0]];
    if (is_output || graph.op(node).name.starts_with("aten.empty.")) classes[node] = next++;
  }
  return classes;
}

// Removes dead code and merges equal values, so that no value is saved twice. PyTorch also merges
// forward with backward nodes, but never a node that gradients need with one that they do not need.
Result<PassResult> prepare_cut(Graph& graph, Compat compat, size_t num_forward_outputs, PassContext& context) {
  const auto forget = [&] {
    graph.prune_control();
    context.facts.of(graph).forget();
  };
  DceOptions dead;
  dead.compat = compat;
  Result<PassResult> result = dce(graph, dead, context);
  if (!result.ok()) return result;
  forget();
  CseOptions equal;
  equal.collectives = compat == Compat::kTorch;
  Result<PassResult> merged =
      compat == Compat::kTorch
          ? cse_within(graph, classes_of_torch(graph, context.facts.of(graph).storages(), num_forward_outputs), equal,
                       context)
          : cse(graph, equal, context);
  if (!merged.ok()) return merged;
  result->merge(std::move(*merged));
  forget();
  return compat == Compat::kTorch ? std::move(result) : with_gathers_merged(graph, false, std::move(result), context);
}

// Whether PyTorch's cut may be taken. The graph must have no tags, no marks and no collectives.
// PyTorch's cut may merge or repeat collectives, so ranks with different peaks would run different
// collectives.
bool may_be_as_torch(const Graph& graph, const PhaseMap& phases) {
  const bool decides = std::ranges::any_of(graph.nodes(), [&](NodeId node) {
    return graph[node].tag != Tag::kNone || graph.op(node).has(Effect::kCollective);
  });
  return !decides && find_marks(graph, phases).values.empty();
}

bool has_tags(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [&graph](NodeId node) { return wants_recompute(graph[node].tag); });
}

// Marks all nodes that belong to forward by joint_halves() as forward, because choices rely on
// phases.
void put_parts_into_forward(Graph& graph, Facts& facts, const JointHalves& halves, PassResult& result) {
  std::vector<NodeId> parts;
  for (const NodeId node : graph.nodes()) {
    if (graph[node].runs() && facts.phases().is_backward(node) && !halves.in_backward[node]) parts.push_back(node);
  }
  move_to_forward(graph, facts, parts, result);
}

Result<PassResult> repeat_choice(Graph& graph, const PartitionOptions& options, PassContext& context) {
  Result<PassResult> prepared = with_gathers_merged(graph, false, PassResult(), context);
  if (!prepared.ok()) return prepared;
  Result<Choice> choice = choose_marked(graph, context.facts.of(graph), options.prefer_recompute);
  if (!choice.ok()) return std::move(choice).error();
  Result<PassResult> result = remat_as_decided(graph, std::move(choice->decisions), context, kPartition);
  if (!result.ok()) return result;
  prepared->merge(std::move(*result));
  prepared->note("marked", choice->num_marked);
  if (choice->num_lost > 0) {
    prepared->warn(graph, kMarksLost,
                   "this graph lacks " + std::to_string(choice->num_lost) + " of " +
                       std::to_string(choice->num_marked + choice->num_lost) +
                       " values that were marked ap_must_save. Backward recomputes missing "
                       "values that it needs");
  }
  return with_gathers_merged(graph, true, std::move(prepared), context);
}

// Reports marked values that backward does not read, or that PyTorch's cut recomputes.
void warn_of_marks(const Graph& graph, const PartitionOptions& options, PassResult& result) {
  std::vector<NodeId> unread, cut;
  for (const NodeId node : graph.nodes()) {
    const NodeExtra* extra = graph.extra(node);
    if (extra == nullptr || !extra->mark_verdict.has_value()) continue;
    const TagVerdict& verdict = *extra->mark_verdict;
    if (verdict.verdict == Verdict::kMoot) unread.push_back(node);
    if (verdict.verdict == Verdict::kOverridden && verdict.rule == TagRule::kCut) cut.push_back(node);
  }
  if (options.mode == PartitionMode::kSaveAll && !unread.empty()) {
    result.remark(graph, "marks-unread",
                  count_with_first(std::ssize(unread), " marked value is not saved, because backward does not read it",
                                   " marked values are not saved, because backward does not read them",
                                   quoted(graph, unread.front())));
  }
  if (cut.empty()) return;
  result.warn(graph, "marks-overridden",
              std::to_string(cut.size()) + (cut.size() == 1 ? " marked value is" : " marked values are") +
                  " recomputed, first " + quoted(graph, cut.front()) +
                  ": compat=torch ignores the mark ap_must_save (use mode=save-all)");
}

// Replaces the recompute tag of a saved value by MUST_SAVE, because PyTorch's partitioners would
// follow the tag. The ledger of erased nodes keeps the old tag and its verdict.
void replace_tag(Graph& graph, NodeId node) {
  record_tag(graph, node, kPartition);
  graph[node].tag = Tag::kMustSave;
  NodeExtra& extra = graph.mutable_extra(node);
  extra.tag_source = TagSource{graph.module().intern(kPartition), true, {}};
  extra.verdict = TagVerdict{Verdict::kHonoured, TagRule::kMustSave, extra.tag_source->pass, {}};
}

// Marks the saved values, and sets the verdict of their marks to `honoured`.
void write_marks(Graph& graph, Facts& facts, const std::vector<NodeId>& saved, PassResult& result) {
  result.count("marked", static_cast<int64_t>(mark_saved(graph, saved)));
  const MarkMap marks = find_marks(graph, facts.phases());
  const TagVerdict honoured{Verdict::kHonoured, TagRule::kReplay, graph.module().intern(kPartition), {}};
  for (const NodeId node : saved) {
    if (!marks.is_saved.get(node)) continue;
    if (wants_recompute(graph[node].tag)) replace_tag(graph, node);
    std::optional<TagVerdict>& verdict = graph.mutable_extra(node).mark_verdict;
    if (verdict.has_value() && verdict->verdict == Verdict::kHonoured) continue;
    verdict = honoured;
    result.count("verdicts");
  }
}

void warn_of_unknown_sizes(const Graph& graph, int64_t count, PassResult& result) {
  if (count == 0) return;
  result.warn(graph, "unknown-sizes",
              (count == 1 ? "1 storage has an unknown size" : std::to_string(count) + " storages have unknown sizes") +
                  ". For each symbol without a value, the cut assumes " + std::to_string(kAssumedSize) +
                  " or the nearest value in the symbol's range. For a storage whose size is unknown even then, it "
                  "assumes " +
                  std::to_string(kAssumedSize) + " B. Set symbols with --symbol");
}

// Recomputes the values that the choice does not save. Adds notes on the choice.
Result<PassResult> carry_out_cut(Graph& graph, Choice choice, Compat compat, PassContext& context) {
  const std::optional<int64_t> cost = choice.cost;
  const int64_t num_unknown = choice.num_unknown;
  choice.decisions.copies_views = compat == Compat::kTorch;
  Result<PassResult> result = carry_out(graph, std::move(choice), compat, context);
  if (!result.ok()) return result;
  if (cost.has_value()) result->note("cut", *cost);
  warn_of_unknown_sizes(graph, num_unknown, *result);
  return result;
}

// `with_cost`: adds the note `cut`, in PyTorch's weights.
Result<PassResult> cut_as_torch(Graph& graph, size_t num_forward_outputs, bool with_cost, PassContext& context) {
  Result<PassResult> prepared = prepare_cut(graph, Compat::kTorch, num_forward_outputs, context);
  if (!prepared.ok()) return prepared;
  Result<Choice> choice = choose_min_cut_as_torch(graph, context.facts.of(graph), context, num_forward_outputs);
  if (!choice.ok()) return std::move(choice).error();
  if (!with_cost) choice->cost.reset();
  Result<PassResult> made = carry_out_cut(graph, std::move(*choice), Compat::kTorch, context);
  if (!made.ok()) return made;
  prepared->merge(std::move(*made));
  return prepared;
}

// Carries out the candidate whose step has the lowest measured peak. If peaks are equal, takes the
// earlier candidate. The cut with the fewest saved bytes comes first.
Result<PassResult> cut_at_lowest_peak(Graph& graph, const PartitionOptions& options, size_t num_forward_outputs,
                                      PassContext& context) {
  Result<PassResult> prepared = prepare_cut(graph, Compat::kFxopt, num_forward_outputs, context);
  if (!prepared.ok()) return prepared;
  Result<std::vector<Choice>> choices = choose_min_cut(graph, context.facts.of(graph), context);
  if (!choices.ok()) return std::move(choices).error();
  std::vector<std::function<Result<PassResult>(Graph&, PassContext&)>> ways;
  for (const Choice& choice : *choices) {
    ways.emplace_back(
        [&choice](Graph& copy, PassContext& trial) { return carry_out_cut(copy, choice, Compat::kFxopt, trial); });
  }
  if (may_be_as_torch(graph, context.facts.of(graph).phases())) {
    const int64_t num_unknown = choices->front().num_unknown;
    ways.emplace_back([num_forward_outputs, num_unknown](Graph& copy, PassContext& trial) {
      Result<PassResult> made = cut_as_torch(copy, num_forward_outputs, false, trial);
      if (made.ok()) warn_of_unknown_sizes(copy, num_unknown, *made);
      return made;
    });
  }
  size_t best = 0;
  std::optional<int64_t> least;
  for (size_t i = 0; i < ways.size() && ways.size() > 1; ++i) {
    const Result<std::optional<int64_t>> peak = peak_after(graph, options.cut, context, ways[i]);
    if (!peak.ok() || !peak->has_value() || (least.has_value() && *least <= **peak)) continue;
    least = **peak;
    best = i;
  }
  Result<PassResult> made = ways[best](graph, context);
  if (!made.ok()) return made;
  prepared->merge(std::move(*made));
  return prepared;
}

Result<PassResult> recompute(Graph& graph, const PartitionOptions& options, size_t num_forward_outputs,
                             PassContext& context) {
  const bool is_torch = options.compat == Compat::kTorch;
  if (options.mode == PartitionMode::kDefault) {
    Facts& known = context.facts.of(graph);
    Choice choice;
    if (is_torch) {
      choice = choose_default_as_torch(graph, known);
    } else {
      choice.decisions = decide_tags(graph, known.phases(), known.storages(), known.effects(), TagRules::kFxopt);
    }
    return remat_as_decided(graph, std::move(choice.decisions), context, kPartition);
  }
  if (options.mode == PartitionMode::kSaveAll) return repeat_choice(graph, options, context);
  return is_torch ? cut_as_torch(graph, num_forward_outputs, true, context)
                  : cut_at_lowest_peak(graph, options, num_forward_outputs, context);
}

// Gives a verdict to each tag without a verdict: `overridden` on backward nodes, otherwise `moot`.
// All marks become moot. Tags of backward nodes move to the ledger of erased nodes.
void judge_without_backward(Graph& graph, const PhaseMap& phases, const JointHalves& halves, PassResult& result) {
  const StringId pass = graph.module().intern(kPartition);
  const auto judge = [&](std::optional<TagVerdict>& verdict, Verdict word, TagRule rule) {
    if (verdict.has_value()) return;
    verdict = TagVerdict{word, rule, pass, {}};
    result.count("verdicts");
  };
  for (const NodeId node : graph.nodes()) {
    const bool is_backward = graph[node].runs() && halves.in_backward[node];
    if (graph[node].tag == Tag::kNone) continue;
    judge(graph.mutable_extra(node).verdict, is_backward ? Verdict::kOverridden : Verdict::kMoot,
          is_backward ? TagRule::kBackwardTag : TagRule::kNone);
    if (is_backward) record_tag(graph, node, kPartition);
  }
  const MarkMap marks = find_marks(graph, phases);
  for (const NodeId value : marks.values) {
    std::optional<TagVerdict>& verdict = graph.mutable_extra(value).mark_verdict;
    if (verdict.has_value() && verdict->verdict == Verdict::kMoot) continue;
    verdict.reset();  // the verdict from the joint graph
    judge(verdict, Verdict::kMoot, TagRule::kNone);
  }
}

// Reduces the module to forward. Also removes unused collectives: every rank runs the same passes,
// so all ranks remove them.
Result<PassResult> keep_forward(Module& module, GraphId joint, PassContext& context, PassResult result) {
  Graph& graph = module.graph(joint);
  const Result<SplitPlan> plan = plan_split(graph, context.facts.of(graph), SplitFor::kInference);
  if (!plan.ok()) return plan.error();
  judge_without_backward(graph, context.facts.of(graph).phases(), plan->halves, result);
  const GraphId forward = extract_forward(module, joint, *plan, result);
  context.facts.forget();
  DceOptions dead;
  dead.collectives = DeadPolicy::kRemove;
  Result<PassResult> cleaned = dce(module.graph(forward), dead, context);
  if (!cleaned.ok()) return cleaned;
  result.merge(std::move(*cleaned));
  return result;
}

// The conflict between options; empty if there is no conflict.
std::string_view without_effect(const PartitionOptions& options) {
  const bool is_for_inference = options.mode == PartitionMode::kInference;
  if (is_for_inference && options.mark_saved) {
    return "'mark-saved' of 'partition' has no effect with mode=inference, which saves nothing";
  }
  if (is_for_inference && !options.cut) {
    return "'cut=false' of 'partition' contradicts mode=inference, which keeps only forward";
  }
  if (options.compat == Compat::kTorch && (is_for_inference || options.mode == PartitionMode::kSaveAll)) {
    return "'compat=torch' of 'partition' is for mode=default and mode=min-cut";
  }
  if (options.prefer_recompute != PreferRecompute::kWins && options.mode != PartitionMode::kSaveAll) {
    return "'prefer-recompute' of 'partition' is for mode=save-all";
  }
  return {};
}

Result<PassResult> partition_for_training(Module& module, GraphId joint, const PartitionOptions& options,
                                          PassContext& context, PassResult result) {
  Graph& graph = module.graph(joint);
  Facts& facts = context.facts.of(graph);
  // Copies made by remat read only what their originals read. Therefore a graph that can be cut now
  // can still be cut after remat.
  Result<SplitPlan> plan = plan_split(graph, facts, SplitFor::kTraining);
  if (!plan.ok()) return plan.error();
  PassResult changes;
  const bool is_torch = options.compat == Compat::kTorch;
  const bool orders_backward = !is_torch || options.mode == PartitionMode::kMinCut || has_tags(graph);
  const bool has_own_choice = options.mode != PartitionMode::kDefault && !is_torch;
  if (has_own_choice) put_parts_into_forward(graph, facts, plan->halves, changes);
  Result<PassResult> recomputed = recompute(graph, options, plan->halves.num_forward_outputs, context);
  if (!recomputed.ok()) return recomputed;
  changes.merge(std::move(*recomputed));
  const bool is_changed = changes.changed();
  result.merge(std::move(changes));
  if (is_changed) {
    graph.prune_control();
    facts.forget();
    plan = plan_split(graph, facts, SplitFor::kTraining);
    if (!plan.ok()) return plan.error();
  }
  warn_of_marks(graph, options, result);
  if (options.mark_saved) write_marks(graph, facts, plan->saved, result);
  if (!options.cut) return result;
  cut(module, joint, *plan, orders_backward, options.compat, context, result);
  if (!is_torch) return result;
  for (const GraphId id : top_level_graphs(module)) {
    Result<PassResult> raised = raise_getitems(module.graph(id), RaiseGetitemsOptions(), context);
    if (!raised.ok()) return raised;
    result.merge(std::move(*raised));
  }
  return result;
}

}  // namespace

Result<PassResult> partition(Module& module, const PartitionOptions& options, PassContext& context) {
  const bool is_for_inference = options.mode == PartitionMode::kInference;
  if (const std::string_view wrong = without_effect(options); !wrong.empty()) {
    return refused(module.main(), NodeId(), std::string(wrong), "leave the option out", ErrorCode::kBadOptionValue);
  }
  PassResult result;
  if (options.prefer_recompute == PreferRecompute::kSave || options.prefer_recompute == PreferRecompute::kRecompute) {
    const bool saves = options.prefer_recompute == PreferRecompute::kSave;
    result.warn(module.main(), "earlier-spelling",
                std::string("prefer-recompute=") + (saves ? "save is now spelled prefer-recompute=loses"
                                                          : "recompute is now spelled prefer-recompute=wins"));
  }
  if (is_for_inference && module.main().kind == GraphKind::kInference) {
    result.remark(module.main(), "partitioned", "nothing to do: there is no backward");
    return result;
  }
  const Result<Joint> joint = find_joint(module, context);
  if (!joint.ok()) return joint.error();
  if (!joint->graph.is_valid()) {
    result.remark(module.main(), "partitioned",
                  "nothing to do: backward is a graph of its own (join makes one graph of both)");
    return result;
  }
  if (!joint->tangents.empty()) {
    Graph& graph = module.graph(joint->graph);
    write_tangents(graph, joint->tangents);
    result.count("tangents", static_cast<int64_t>(joint->tangents.size()));
    context.facts.of(graph).forget();
  }
  if (is_for_inference) return keep_forward(module, joint->graph, context, std::move(result));
  return partition_for_training(module, joint->graph, options, context, std::move(result));
}

}  // namespace fxopt
