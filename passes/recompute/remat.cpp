// Rematerialisation in one graph that holds forward, loss and backward.
//
//   %m = mm(%x, %w) {tag=MUST_RECOMPUTE}         %m = mm(%x, %w)
//   %g = gelu(%m)                                %g = gelu(%m)
//   ...                                    =>    ...
//   %b = gelu_backward(%d, %m)                   %m_recomputed = mm(%x, %w)
//                                                %b = gelu_backward(%d, %m_recomputed)
//
// Region  A maximal run of backward nodes. A node without a backward mark that depends on backward
//         values (a gradient sum, an accumulation) does not end a run. An independent forward node
//         ends the run, such as the next chunk of a chunked loss. Each region gets its own copies,
//         because a copy that several regions share would stay alive between the regions, like a
//         saved value.
// Place   A copy is placed directly before the first node of the region that needs it. Several
//         copies at one place are in forward order. Only nodes of the same region read the copy.
// Legal   The op must be repeatable, and RepeatRules (ir/step/repeat.h) must allow the copy. A
//         PREFER_RECOMPUTE value that cannot be repeated is saved.
// Offload A copy reads an offloaded value from its reload, which moves before the copy if needed.
//         If the copy reads a view of the offloaded value, the view is copied as well. If the
//         reload cannot move, the consumer of the offloaded value is saved.
// Copies  A copy gets its own metadata and storages, an origin and the phase backward. It gets no
//         tag, so a second run of remat makes no more copies.
//
// Phases  Phases are inferred if the graph has no phase markers. They are written if copies are
//         made, so that later passes use the same phases.
//
// compat=torch follows PyTorch. If the graph has phase markers, only nodes with a marker for
// backward are backward. Only one region may need copies. Views and waits inherit no tags. Mutation
// is ignored.

#include "passes/recompute/remat.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text.h"
#include "ir/alias/collectives.h"
#include "ir/alias/effects.h"
#include "ir/alias/order.h"
#include "ir/step/marks.h"
#include "ir/step/tags.h"
#include "ir/values/values.h"
#include "passes/pass/nodes.h"
#include "passes/pass/provenance.h"
#include "passes/pass/replacer.h"
#include "passes/recompute/reloads.h"
#include "passes/recompute/remat_plan.h"
#include "passes/recompute/verdicts.h"

namespace fxopt {
namespace {

bool names_subgraph(const Graph& graph, NodeId node) {
  if (graph[node].kind != NodeKind::kGetAttr) return false;
  const std::string_view path = graph.module().text(graph.module().target(graph[node].target).name);
  return std::ranges::any_of(graph.attributes, [&](const Attribute& attribute) {
    return attribute.graph.is_valid() && graph.module().text(attribute.path) == path;
  });
}

// Makes the copies of one graph. Trusts the plan.
class Writer {
 public:
  Writer(Graph& graph, const RematFacts& facts, bool own_subgraphs, StringId pass, PassResult& result)
      : graph_(graph), facts_(facts), own_subgraphs_(own_subgraphs), result_(result), pass_(pass) {}

  void run(const RematPlan& plan) {
    move_to_forward(plan.sizes);
    for (const RematRegion& region : plan.regions) {
      for (const RematStep& step : region.steps) {
        for (const NodeId link : step.hoisted) hoist(link, step.consumer);
        for (const NodeId original : step.copies) copy(original, step.consumer);
        redirect(step.consumer);
      }
      for (const NodeId node : region.nodes) follow_copies(node);
      forget();
      result_.note("regions");
    }
  }

  const IdMap<NodeId, NodeId>& originals() const { return originals_; }

 private:
  // Forgets the copies of a region. Takes time proportional to the copies, because a graph may have
  // as many regions as nodes.
  void forget() {
    for (const NodeId original : copied_) mapped_[original] = NodeId();
    for (const BufferId buffer : owned_) buffers_[buffer] = StorageId();
    copied_.clear();
    owned_.clear();
  }

  void copy(NodeId original, NodeId before) {
    const std::string base = std::string(graph_.name_of(original)) + "_recomputed";
    const NodeId id = graph_.clone_node(original, before, base, mapped_);
    mapped_[original] = id;
    originals_[id] = original;
    copied_.push_back(original);
    Node& node = graph_[id];
    node.phase = Phase::kBackward;
    node.phase_markers = marker_bit(PhaseMarker::kAutogradBackward);
    node.value = own_value(original);
    strip_mark(graph_, id);
    add_origin(graph_, id, original, OriginKind::kRecomputed, pass_);
    result_.count("recomputed");
    if (!reloads_.empty()) read_reloads(id);
    if (own_subgraphs_) own_subgraphs(id);
  }

  // Moves each call directly after its last input. If an op in between changes the sizes of that
  // input in place, the call stays, and keeps the input alive.
  void move_to_forward(const std::vector<NodeId>& sizes) {
    if (sizes.empty()) return;
    IdMap<NodeId, uint32_t> places(graph_.num_ids(), 0);
    for (const NodeId node : graph_.nodes()) places[node] = graph_.position(node);
    for (const NodeId node : sizes) move_to_forward(node, places);
    result_.count("into-forward", static_cast<int64_t>(mark_rest_of_forward(graph_, phases_)));
  }

  void move_to_forward(NodeId node, IdMap<NodeId, uint32_t>& places) {
    NodeId last;
    graph_.for_each_input(node, [&](NodeId input) {
      if (!last.is_valid() || places[input] > places[last]) last = input;
    });
    NodeId next = graph_.next(last);
    while (graph_[next].kind == NodeKind::kPlaceholder) next = graph_.next(next);
    if (is_held(graph_, node) || storages_.input_metadata_changes(node, last, node)) return;
    if (next != node) hoist(node, next);
    places[node] = places[last];
    if (has_no_phase_mark(graph_[node])) return;
    graph_[node].phase = Phase::kForward;
    graph_[node].phase_markers = marker_bit(PhaseMarker::kIsForward);
    result_.count("into-forward");
  }

  void hoist(NodeId link, NodeId before) {
    graph_.move_before(link, before);
    result_.count("hoisted");
  }

  void read_reloads(NodeId copied) {
    for (const UseId use : graph_.edges(copied)) {
      const NodeId wait = reloads_.of(graph_.use(use).input);
      if (wait.is_valid()) graph_.set_use(use, wait);
    }
  }

  void own_subgraphs(NodeId copied) {
    const IdMap<NodeId, NodeId> nothing;
    for (const UseId use : graph_.edges(copied)) {
      const NodeId input = graph_.use(use).input;
      if (!names_subgraph(graph_, input)) continue;
      const NodeId own = graph_.clone_node(input, copied, std::string(graph_.name_of(input)), nothing);
      add_origin(graph_, own, input, OriginKind::kRecomputed, pass_);
      graph_.set_use(use, own);
      result_.count("own-subgraphs");
    }
  }

  void redirect(NodeId consumer) {
    for (const UseId use : graph_.edges(consumer)) {
      const NodeId to = mapped_.get(graph_.use(use).input);
      if (!to.is_valid()) continue;
      graph_.set_use(use, to);
      result_.count("redirected");
    }
  }

  // If the backward node is a view of a copy, records the storage of the copy in its value.
  void follow_copies(NodeId node) {
    const bool moved = std::ranges::any_of(storages_.buffers(node),
                                           [this](BufferId buffer) { return buffers_.get(buffer).is_valid(); });
    if (moved) graph_[node].value = own_value(node);
  }

  // The recorded value of the original, with the storages of the copy.
  ValueId own_value(NodeId original) {
    const ValueId value = graph_[original].value;
    if (!value.is_valid()) return value;
    const std::span<const BufferId> buffers = storages_.buffers(original);
    size_t leaf = 0;
    return graph_.pool().copy_value(graph_.pool(), value, [&](Tensor& tensor) {
      if (tensor.storage.is_valid() && leaf < buffers.size()) {
        tensor.storage = own_storage(buffers[leaf], tensor.storage);
      }
      ++leaf;
    });
  }

  // The storage for a copy. If the node that made the original's storage is copied, this is a new
  // storage. If the storage was offloaded, this is the storage of the reload. Otherwise it is the
  // original's storage.
  StorageId own_storage(BufferId buffer, StorageId carried) {
    if (const NodeId offloaded = reloads_.offloaded_on(buffer); offloaded.is_valid()) {
      const Tensor* reloaded = single_tensor(graph_, reloads_.of(offloaded));
      return reloaded != nullptr && reloaded->storage.is_valid() ? reloaded->storage : carried;
    }
    const NodeId producer = storages_.buffer(buffer).producer;
    if (storages_.buffer(buffer).source != BufferSource::kNode || !mapped_.get(producer).is_valid()) {
      return carried;
    }
    StorageId& own = buffers_[buffer];
    if (!own.is_valid()) {
      const StorageRecord record = graph_.module().storage(carried);
      own = graph_.module().fresh_storage(record.bytes, record.device);
      owned_.push_back(buffer);
    }
    return own;
  }

  Graph& graph_;
  const RematFacts& facts_;
  bool own_subgraphs_;
  PassResult& result_;
  StringId pass_;
  const PhaseMap& phases_ = facts_.phases;
  const StorageMap& storages_ = facts_.storages;
  const Reloads& reloads_ = facts_.reloads;
  IdMap<NodeId, NodeId> mapped_{graph_.num_ids()};               // original to its copy in the current region
  IdMap<BufferId, StorageId> buffers_{storages_.num_buffers()};  // buffer of an original to the storage of its copy
  IdMap<NodeId, NodeId> originals_;                              // copy to its original
  std::vector<NodeId> copied_;                                   // the keys set in mapped_
  std::vector<BufferId> owned_;                                  // the keys set in buffers_
};

// A tag keeps its first verdict, because a later run does not carry out the tag again. A mark has
// the verdict of the last run in which backward still read the saved value.
void write_verdicts(Graph& graph, const RematPlan& plan, const RematFacts& facts, StringId pass, PassResult& result) {
  const IdMap<NodeId, TagVerdict> verdicts = judge_tags(graph, plan, facts);
  for (const NodeId node : graph.nodes()) {
    const NodeExtra* extra = graph.extra(node);
    if (graph[node].tag == Tag::kNone || (extra != nullptr && extra->verdict.has_value())) continue;
    TagVerdict verdict = verdicts[node];
    verdict.pass = pass;
    graph.mutable_extra(node).verdict = verdict;
    result.count("verdicts");
  }
  if (!facts.holds_backward) return;
  for (auto& [node, verdict] : judge_marks(graph, plan, facts)) {
    verdict.pass = pass;
    std::optional<TagVerdict>& known = graph.mutable_extra(node).mark_verdict;
    // After a mark is overridden, backward reads copies, so the verdict must not change.
    const bool is_final = known.has_value() && known->verdict == Verdict::kOverridden;
    if (is_final || (known.has_value() && known->verdict == verdict.verdict && known->rule == verdict.rule)) continue;
    known = verdict;
    result.count("verdicts");
  }
}

// Writes a remark on recompute tags in a graph without backward nodes. Tags that an earlier pass
// carried out in the joint graph are ignored.
void remark_without_backward(const Graph& graph, PassResult& result) {
  int64_t tagged = 0;
  NodeId first;
  for (const NodeId node : graph.nodes()) {
    const NodeExtra* extra = graph.extra(node);
    if (!wants_recompute(graph[node].tag) || (extra != nullptr && extra->verdict.has_value())) continue;
    if (tagged++ == 0) first = node;
  }
  if (tagged == 0) return;
  result.remark(graph, first, kNoBackward,
                std::to_string(tagged) + (tagged == 1 ? " recompute tag is" : " recompute tags are") +
                    " without effect: no node of this graph is marked backward or inferred to be backward");
}

// The collectives of each group in the order of their first run, without erased ones. A copy counts
// as its original.
using GroupOrders = std::map<GroupKey, std::vector<NodeId>>;
GroupOrders find_orders(const Graph& graph, const IdMap<NodeId, NodeId>& originals,
                        const IdMap<NodeId, bool>& is_gone) {
  GroupOrders orders;
  IdMap<NodeId, bool> is_known(graph.num_ids(), false);
  for (const NodeId node : graph.nodes()) {
    if (!graph[node].is_call() || !graph.op(node).has(Effect::kCollective) || is_gone.get(node)) continue;
    const NodeId original = originals.get(node).is_valid() ? originals.get(node) : node;
    if (is_known[original]) continue;
    is_known[original] = true;
    orders[group_of_call(graph, node)].push_back(original);
  }
  return orders;
}

IdMap<NodeId, bool> find_unread(const Graph& graph, const RematPlan& plan) {
  IdMap<NodeId, bool> is_unread(graph.num_ids(), false);
  for (NodeId node = graph.last(); node.is_valid(); node = graph.prev(node)) {
    bool is_read = !plan.recomputed.get(node);
    for_each_user(graph, node, [&](NodeId user) { is_read = is_read || !is_unread.get(user); });
    is_unread[node] = !is_read;
  }
  return is_unread;
}

// Unused originals that stay: collectives whose removal would change the order of collectives in
// their group, and the waits of collectives that stay.
IdMap<NodeId, bool> find_held(const Graph& graph, const IdMap<NodeId, NodeId>& originals,
                              const IdMap<NodeId, bool>& is_unread, PassResult& result) {
  IdMap<NodeId, bool> held(graph.num_ids(), false);
  const GroupOrders before = find_orders(graph, originals, IdMap<NodeId, bool>(graph.num_ids(), false));
  GroupOrders after = find_orders(graph, originals, is_unread);
  for (const auto& [group, order] : before) {
    const bool is_same = after[group] == order;
    for (const NodeId node : order) {
      if (is_unread.get(node) && is_same) continue;
      for (const NodeId wait : waits_for(graph, node)) held[wait] = true;
      if (!is_unread.get(node)) continue;
      held[node] = true;
      result.remark(graph, node, "kept-in-order",
                    "forward keeps this collective, although only its copy in backward is used. Without the collective "
                    "in forward, the order of its group's collectives would change");
    }
  }
  return held;
}

// Erases unused originals from the last to the first, so that whole chains are erased.
void erase_originals(Graph& graph, const RematPlan& plan, const RematFacts& facts,
                     const IdMap<NodeId, NodeId>& originals, std::string_view pass, PassResult& result) {
  if (plan.regions.empty()) return;  // no original was copied
  const IdMap<NodeId, bool> held = find_held(graph, originals, find_unread(graph, plan), result);
  Replacer replacer(graph, facts.phases, pass);
  for (NodeId node = graph.last(); node.is_valid();) {
    const NodeId previous = graph.prev(node);
    if (plan.recomputed[node] && !graph.has_users(node) && !held.get(node)) {
      replacer.erase_unread(node);
      result.count("erased");
    }
    node = previous;
  }
  replacer.finish();
}

// PyTorch refuses every recompute tag on a random op, even if backward does not need the value.
std::optional<Error> refused_by_torch(const Graph& graph, const TagDecisions& decisions) {
  for (const NodeId node : graph.nodes()) {
    if (!decisions.of[node].recompute || !is_random_call(graph, node)) continue;
    Error error{ErrorCode::kUnsupportedGraph,
                "'%" + std::string(graph.name_of(node)) +
                    "' draws random numbers and is tagged for recompute, which compat=torch refuses",
                "run remat without compat=torch, or tag the node MUST_SAVE",
                {}};
    error.where.graph = graph.module().text(graph.name());
    error.where.node = graph.name_of(node);
    return error;
  }
  return std::nullopt;
}

Result<PassResult> carry_out(Graph& graph, const RematFacts& facts, const RematOptions& options,
                             std::string_view pass) {
  PassResult result;
  const StringId by = graph.module().intern(pass);
  if (options.compat == Compat::kTorch) {
    if (const std::optional<Error> refused = refused_by_torch(graph, facts.decisions)) return *refused;
  }
  Result<RematPlan> plan = plan_remat(graph, facts, options);
  if (!plan.ok()) return std::move(plan).error();
  if (!facts.holds_backward) remark_without_backward(graph, result);
  result.remark_unmatched(graph, "exclude", options.exclude, [&graph](NodeId node, std::string_view name) {
    return is_within(graph.module().text(graph[node].module_path), name);
  });
  for (const TagRemark& remark : facts.decisions.remarks) result.remark(graph, remark.node, remark.code, remark.text);
  for (const TagRemark& remark : plan->blocked_remarks) {
    if (remark.code == kNotExact) {
      result.warn(graph, remark.node, remark.code, remark.text);
    } else {
      result.remark(graph, remark.node, remark.code, remark.text);
    }
  }
  write_verdicts(graph, *plan, facts, by, result);
  if (!plan->regions.empty() && !facts.phases.has_markers && graph.kind != GraphKind::kBackward) {
    result.count("phase-marks", static_cast<int64_t>(mark_phases(graph, facts.phases)));
  }
  Writer writer(graph, facts, options.own_subgraphs, by, result);
  writer.run(*plan);
  erase_originals(graph, *plan, facts, writer.originals(), pass, result);
  return result;
}

}  // namespace

Result<PassResult> remat(Graph& graph, const RematOptions& options, PassContext& context) {
  return carry_out(graph, RematFacts(context.facts.of(graph), options.compat), options, "remat");
}

Result<PassResult> remat_as_decided(Graph& graph, TagDecisions decisions, PassContext& context, std::string_view pass) {
  return carry_out(graph, RematFacts(context.facts.of(graph), std::move(decisions)), RematOptions(), pass);
}

}  // namespace fxopt
