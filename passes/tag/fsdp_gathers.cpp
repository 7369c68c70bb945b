// Recompute tags on what FSDP gathers.
//
//   %p = placeholder() {role=parameter}
//   %c = _to_copy(%p)                        tagged
//   %a = all_gather_into_tensor(%c)          tagged
//   %w = wait_tensor(%a)                     tagged
//   %s = split(%w)  ...  %u = cat([...])     tagged, with through=chain
//   %t = t(%u)                               tagged, with through=chain: else it would be saved, as large as the parameter
//   %y = mm(%x, %t)
//
// What is gathered is told by where its data come from, not by names: each value is one of parameters' shards, of gathered
// parameters, or of anything else. Activations that tensor parallelism gathers are anything else.

#include "passes/tag/fsdp_gathers.h"

#include <algorithm>
#include <string>
#include <vector>

#include "ir/alias/collectives.h"
#include "ir/alias/effects.h"
#include "ir/alias/storages.h"
#include "ir/step/infer_roles.h"
#include "ir/step/phases.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

enum class Content : uint8_t { kOther, kShard, kGathered };

class Tagger {
 public:
  Tagger(Graph& graph, Facts& facts, const FsdpGathersOptions& options, PassResult& result)
      : graph_(graph),
        facts_(facts),
        phases_(facts.phases()),
        options_(options),
        result_(result),
        content_(graph.num_ids(), Content::kOther),
        is_past_wait_(graph.num_ids(), false) {}

  void run() {
    find_parameters();
    int64_t gathers = 0;
    for (const NodeId node : graph_.nodes()) {
      if (!graph_[node].is_call() || phases_.is_backward(node)) continue;
      content_[node] = content_of(node);
      gathers += content_[node] == Content::kGathered && is_gather(node) ? 1 : 0;
    }
    result_.note("gathers", gathers);
    if (gathers == 0) {
      result_.warn(graph_, "no-gathers", "no all-gather of forward is given parameters alone: nothing is tagged");
      return;
    }
    mark_shards();
    options_.policy == GatherPolicy::kRecompute ? tag_all() : tag_memory();
  }

 private:
  void find_parameters() {
    bool is_recorded = false;
    for (const NodeId node : graph_.nodes()) {
      if (graph_[node].kind != NodeKind::kPlaceholder) continue;
      const InputRole role = recorded_role(graph_, node);
      is_recorded = is_recorded || role != InputRole::kUnspecified;
      if (role == InputRole::kParameter) content_[node] = Content::kShard;
    }
    if (is_recorded) return;
    for (const DerivedInput& input : infer_roles(graph_, facts_.storages()).inputs) {
      if (input.role == InputRole::kParameter) content_[input.node] = Content::kShard;
    }
  }

  bool is_gather(NodeId node) const {
    return graph_.op(node).has(Effect::kCollective) && collective_kind(graph_.op(node)) == CollectiveKind::kAllGather;
  }

  // Whether the op hands data on as they are, but for place and dtype.
  bool is_layout(NodeId node) const {
    const Op& op = graph_.op(node);
    return op.is_pure() && (op.compute == ComputeClass::kView || op.compute == ComputeClass::kDataMovement ||
                            view_of_call(graph_, node) != ViewKind::kNone);
  }

  Content content_of(NodeId node) {
    bool is_any = false, is_other = false, is_gathered = false;
    graph_.for_each_input(node, [&](NodeId input) {
      const ValueKind kind = graph_.value(input).kind;
      if (kind == ValueKind::kSymbolic || kind == ValueKind::kScalar) return;
      is_any = true;
      is_other = is_other || content_.get(input) == Content::kOther;
      is_gathered = is_gathered || content_.get(input) == Content::kGathered;
    });
    if (!is_any || is_other) return Content::kOther;
    if (is_gather(node)) return graph_.op(node).has(Effect::kMutates) ? Content::kOther : Content::kGathered;
    if (graph_.op(node).has(Effect::kWaits)) return is_gathered ? Content::kGathered : Content::kOther;
    if (!is_layout(node)) return Content::kOther;
    if (is_gathered && is_waited_for(node)) is_past_wait_[node] = true;
    return is_gathered ? Content::kGathered : Content::kShard;
  }

  // Whether it reads a wait, and no part of an unfinished gather.
  bool is_waited_for(NodeId node) const {
    bool found = false;
    graph_.for_each_input(node, [&](NodeId input) {
      found = found || is_past_wait_.get(input) || (graph_[input].is_call() && graph_.op(input).has(Effect::kWaits));
    });
    return found;
  }

  // Of values of shards those that lead to a gather.
  void mark_shards() {
    leads_ = IdMap<NodeId, bool>(graph_.num_ids(), false);
    for (NodeId node = graph_.last(); node.is_valid(); node = graph_.prev(node)) {
      if (!graph_[node].is_call() || content_.get(node) == Content::kOther) continue;
      const bool is_source = content_.get(node) == Content::kGathered && is_gather(node);
      const bool is_on_way = content_.get(node) == Content::kShard && leads_.get(node);
      if (!is_source && !is_on_way) continue;
      graph_.for_each_input(node, [this](NodeId input) { leads_[input] = true; });
    }
  }

  bool is_reached(NodeId node) const { return options_.through == GatherReach::kChain || !is_past_wait_.get(node); }

  void tag_all() {
    for (const NodeId node : graph_.nodes()) {
      if (!graph_[node].is_call()) continue;
      const bool is_shard = content_.get(node) == Content::kShard && leads_.get(node);
      if (is_shard || (content_.get(node) == Content::kGathered && is_reached(node))) tag(node, Tag::kMustRecompute);
    }
  }

  // What makes the memory on which values lie that others read.
  void tag_memory() {
    const StorageMap& storages = facts_.storages();
    for (const NodeId node : graph_.nodes()) {
      if (!graph_[node].is_call() || content_.get(node) != Content::kGathered || !is_reached(node)) continue;
      bool is_last = false;
      for (UseId use = graph_.first_use(node); use.is_valid(); use = graph_.use(use).next) {
        const NodeId user = graph_.use(use).user;
        is_last = is_last || content_.get(user) != Content::kGathered || !is_reached(user);
      }
      if (!is_last) continue;
      for (const BufferId id : storages.buffers(node)) {
        if (!id.is_valid() || storages.buffer(id).source != BufferSource::kNode) continue;
        const NodeId maker = storages.buffer(id).producer;
        if (content_.get(maker) == Content::kGathered) tag(maker, Tag::kMustSave);
      }
    }
  }

  void tag(NodeId node, Tag tag) {
    Node& tagged = graph_[node];
    if (tagged.tag == tag) return;
    if (tagged.tag == Tag::kMustSave) {
      result_.remark(graph_, node, "kept-tag", "it is MUST_SAVE, and stays so");
      return;
    }
    tagged.tag = tag;
    result_.count(tag == Tag::kMustSave ? "tagged-save" : "tagged-recompute");
  }

  Graph& graph_;
  Facts& facts_;
  const PhaseMap& phases_;
  const FsdpGathersOptions& options_;
  PassResult& result_;
  IdMap<NodeId, Content> content_;
  IdMap<NodeId, bool> is_past_wait_;  // made of what a wait has handed on
  IdMap<NodeId, bool> leads_;         // to a gather
};

}  // namespace

Result<PassResult> fsdp_gathers(Graph& graph, const FsdpGathersOptions& options, PassContext& context) {
  PassResult result;
  Tagger(graph, context.facts.of(graph), options, result).run();
  return result;
}

}  // namespace fxopt
