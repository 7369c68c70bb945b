// Rematerialisation in one graph that holds forward, loss and backward.
//
//   %m = mm(%x, %w) {tag=MUST_RECOMPUTE}         %m = mm(%x, %w)
//   %g = gelu(%m)                                %g = gelu(%m)
//   ...                                    =>    ...
//   %b = gelu_backward(%d, %m)                   %m_recomputed = mm(%x, %w)
//                                                %b = gelu_backward(%d, %m_recomputed)
//
// Region  A maximal run of backward nodes. A node without a backward mark that depends on backward values (a gradient
// sum,
//         an accumulation) does not end a run; an independent forward node, such as the next chunk of a chunked loss,
//         does. Each region gets its own copies: sharing one across regions would keep it alive between them, which is
//         saving it.
// Place   Right before the first node of the region that needs it, in forward order. Only edges of nodes behind the
// copy,
//         in the same region, are redirected.
// Legal   The op can be repeated; nothing writes what it reads between the original and the copy; nothing at all writes
//         the original's own result, since the write would go to one of two tensors; and of several tensors on its
//         memory that the caller is handed, backward made none.
// Offload A copy reads an offloaded value from its reload, which moves before it where it stands behind; views of the
//         value between the two are copied too, and where that cannot be the reader is saved.
// Copies  get their own metadata and storages, an origin, phase backward, no tag: running remat twice copies nothing
// more.
//
// compat=torch takes PyTorch's regions (the marks alone, one region), tags (no inheritance by views and waits) and asks
// nothing about mutation.

#include "passes/recompute/remat.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text.h"
#include "ir/analysis/effects.h"
#include "ir/analysis/tags.h"
#include "ir/analysis/values.h"
#include "passes/pipeline/ledger.h"
#include "passes/recompute/reloads.h"
#include "passes/recompute/remat_plan.h"

namespace fxopt {
namespace {

bool names_subgraph(const Graph& graph, NodeId node) {
  if (graph[node].kind != NodeKind::kGetAttr) return false;
  const std::string_view path = graph.module().text(graph.module().target(graph[node].target).name);
  return std::any_of(graph.attributes.begin(), graph.attributes.end(), [&](const Attribute& attribute) {
    return attribute.graph.is_valid() && graph.module().text(attribute.path) == path;
  });
}

// Makes the copies of one graph. Trusts the plan.
class Writer {
 public:
  Writer(Graph& graph, const StorageMap& storages, const Reloads& reloads, bool own_subgraphs, PassResult& result)
      : graph_(graph),
        storages_(storages),
        reloads_(reloads),
        own_subgraphs_(own_subgraphs),
        result_(result),
        pass_(graph.module().intern("remat")) {}

  void run(const RematPlan& plan) {
    for (const RematRegion& region : plan.regions) {
      mapped_ = IdMap<NodeId, NodeId>(graph_.num_ids());
      buffers_ = IdMap<BufferId, StorageId>(storages_.num_buffers());
      for (const RematStep& step : region.steps) {
        for (const NodeId link : step.hoisted) hoist(link, step.consumer);
        for (const NodeId original : step.copies) copy(original, step.consumer);
        redirect(step.consumer);
      }
      for (const NodeId node : region.nodes) follow_copies(node);
      result_.note("regions");
    }
  }

 private:
  void copy(NodeId original, NodeId before) {
    const std::string base = std::string(graph_.name_of(original)) + "_recomputed";
    const NodeId id = graph_.clone_node(original, before, base, mapped_);
    mapped_[original] = id;
    Node& node = graph_[id];
    node.phase = Phase::kBackward;
    node.phase_markers = 1U << static_cast<uint32_t>(PhaseMarker::kAutogradBackward);
    node.value = own_value(original);
    note_origin(id, original);
    result_.count("recomputed");
    if (!reloads_.empty()) read_reloads(id);
    if (own_subgraphs_) own_subgraphs(id);
  }

  void note_origin(NodeId copied, NodeId original) {
    Origin origin;
    origin.graph = graph_.name();
    origin.uid = graph_[original].uid;
    origin.kind = OriginKind::kRecomputed;
    origin.pass = pass_;
    graph_.mutable_extra(copied).origins.push_back(origin);
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
      note_origin(own, input);
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

  // A view in backward that now stands on a copy is recorded on the copy's storage.
  void follow_copies(NodeId node) {
    const std::span<const BufferId> buffers = storages_.buffers(node);
    const bool moved = std::any_of(buffers.begin(), buffers.end(),
                                   [this](BufferId buffer) { return buffers_.get(buffer).is_valid(); });
    if (moved) graph_[node].value = own_value(node);
  }

  // The original's value on storages of the copy's own.
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

  // A storage made by a copied node is a new one; any other is the one the original had.
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
    }
    return own;
  }

  Graph& graph_;
  const StorageMap& storages_;
  const Reloads& reloads_;
  bool own_subgraphs_;
  PassResult& result_;
  StringId pass_;
  IdMap<NodeId, NodeId> mapped_;        // of the region at hand
  IdMap<BufferId, StorageId> buffers_;  // likewise
};

// The verdict on one tag, from what the plan does and whether backward reads the value at all.
TagVerdict verdict_of(const TagDecision& decision, Tag tag, bool recomputed, bool blocked, bool needed) {
  TagVerdict verdict;
  const bool wants = wants_recompute(tag);
  verdict.rule = decision.rule;
  if (decision.rule == kRuleBackwardTag) {
    verdict.verdict = Verdict::kOverridden;
  } else if (wants && recomputed) {
    verdict.verdict = Verdict::kHonoured;
  } else if (!needed) {
    verdict.verdict = Verdict::kMoot;
  } else if (blocked) {
    verdict.verdict = Verdict::kOverridden;
    verdict.rule = kRuleMutation;
  } else {
    verdict.verdict = wants ? Verdict::kOverridden : Verdict::kHonoured;
  }
  return verdict;
}

// A verdict stands once it is given: a later run of remat has nothing to add to a tag that was carried out.
void write_verdicts(Graph& graph, const RematPlan& plan, const PhaseMap& phases, const StorageMap& storages,
                    const TagDecisions& decisions, PassResult& result) {
  const StringId pass = graph.module().intern("remat");
  IdMap<BufferId, bool> read_by_backward(storages.num_buffers(), false);
  IdMap<NodeId, bool> input_of_backward(graph.num_ids(), false);
  for (const NodeId node : graph.nodes()) {
    // A copy will read what its original reads; excluded nodes read what forward made.
    if (plan.excluded[node] || (!phases.is_backward(node) && !plan.recomputed[node])) continue;
    for (const BufferId buffer : storages.reads(node)) read_by_backward[buffer] = true;
    graph.for_each_input(node, [&input_of_backward](NodeId input) { input_of_backward[input] = true; });
  }
  for (const NodeId node : graph.nodes()) {
    const Tag tag = graph[node].tag;
    const NodeExtra* extra = graph.extra(node);
    if (tag == Tag::kNone || (extra != nullptr && extra->verdict.has_value())) continue;
    bool needed = input_of_backward.get(node);
    for (const BufferId buffer : storages.buffers(node)) needed = needed || read_by_backward.get(buffer);
    TagVerdict verdict = verdict_of(decisions.of[node], tag, plan.recomputed[node], plan.blocked[node], needed);
    verdict.pass = pass;
    graph.mutable_extra(node).verdict = verdict;
    result.count("verdicts");
  }
}

// Originals nobody reads any more, from the last to the first so that chains go.
void erase_originals(Graph& graph, const RematPlan& plan, PassResult& result) {
  for (NodeId node = graph.last(); node.is_valid();) {
    const NodeId previous = graph.prev(node);
    if (plan.recomputed[node] && !graph.has_users(node)) {
      erase_unread(graph, node, "remat");
      result.count("erased");
    }
    node = previous;
  }
}

// PyTorch refuses any recompute tag on a random op, needed or not.
std::optional<Error> refused_by_torch(const Graph& graph, const TagDecisions& decisions) {
  for (const NodeId node : graph.nodes()) {
    if (!decisions.of[node].recompute || !is_random_call(graph, node)) continue;
    Error error;
    error.code = ErrorCode::kUnsupportedGraph;
    error.message = "'%" + std::string(graph.name_of(node)) +
                    "' draws random numbers and is tagged for recompute, which compat=torch refuses";
    error.hint = "run remat without compat=torch, or tag the node MUST_SAVE";
    error.where.graph = graph.module().text(graph.name());
    error.where.node = graph.name_of(node);
    return error;
  }
  return std::nullopt;
}

}  // namespace

Result<PassResult> remat(Graph& graph, const RematOptions& options) {
  PassResult result;
  const PhaseMap phases = analyze_phases(graph);
  EffectMap effects(graph);
  const StorageMap storages(graph, effects);
  const TagRules rules = options.compat == Compat::kTorch ? TagRules::kTorch : TagRules::kFxopt;
  const TagDecisions decisions = decide_tags(graph, phases, storages, effects, rules);
  if (rules == TagRules::kTorch) {
    if (const std::optional<Error> refused = refused_by_torch(graph, decisions)) return *refused;
  }
  const Reloads reloads(graph, phases, storages);
  Result<RematPlan> plan = plan_remat(graph, phases, storages, decisions, reloads, options.exclude, options.compat);
  if (!plan.ok()) return std::move(plan).error();
  result.remark_unmatched(graph, "exclude", split_list(options.exclude), [&graph](NodeId node, std::string_view name) {
    return is_within(graph.module().text(graph[node].module_path), name);
  });
  for (const TagRemark& remark : decisions.remarks) result.remark(graph, remark.node, remark.code, remark.text);
  for (const TagRemark& remark : plan->blocked_remarks) result.remark(graph, remark.node, remark.code, remark.text);
  write_verdicts(graph, *plan, phases, storages, decisions, result);
  Writer(graph, storages, reloads, options.own_subgraphs, result).run(*plan);
  erase_originals(graph, *plan, result);
  return result;
}

}  // namespace fxopt
