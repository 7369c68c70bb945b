#include "passes/recompute/remat_plan.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "core/text.h"
#include "ir/alias/collectives.h"
#include "ir/alias/effects.h"
#include "ir/step/halves.h"
#include "ir/values/values.h"
#include "passes/pass/nodes.h"
#include "passes/pass/refusal.h"
#include "passes/recompute/verdicts.h"

namespace fxopt {
namespace {

class Planner {
 public:
  enum class OnError { kStop, kPassOver };

  Planner(const Graph& graph, const RematFacts& facts, const RematOptions& options, OnError on_error)
      : graph_(graph), facts_(facts), compat_(options.compat), on_error_(on_error) {
    exclude_modules(options.exclude);
    if (compat_ == Compat::kFxopt) find_sizes();
    for (const Unrepeatable& entry : decisions_.unrepeatable) unrepeatable_[entry.node] = entry.reason;
  }

  Result<RematPlan> run() {
    for (const std::vector<NodeId>& region : regions()) {
      ++region_number_;
      if (compat_ == Compat::kFxopt) find_read_for_values(region);
      RematRegion plan;
      for (const NodeId consumer : region) {
        if (plan_.excluded[consumer] || plan_.is_size[consumer]) continue;
        Result<RematStep> step = plan_step(consumer);
        if (!step.ok()) return std::move(step).error();
        if (!step->copies.empty() || reads_copy(consumer)) plan.steps.push_back(std::move(*step));
      }
      if (plan.steps.empty()) continue;
      for (const NodeId node : region) {
        if (!plan_.is_size[node]) plan.nodes.push_back(node);
      }
      plan_.regions.push_back(std::move(plan));
    }
    for (const NodeId node : read_for_shape_) {
      if (!plan_.recomputed[node])
        block_once(node, TagRule::kShape, "read-for-shape", "not recomputed: backward reads only its shape");
    }
    if (compat_ == Compat::kTorch && plan_.regions.size() > 1 && on_error_ == OnError::kStop) {
      return Error{ErrorCode::kUnsupportedGraph,
                   std::to_string(plan_.regions.size()) +
                       " disjoint backward regions need recomputation, but compat=torch allows only one",
                   "run remat without compat=torch, which handles any number",
                   {}};
    }
    return std::move(plan_);
  }

 private:
  void exclude_modules(const std::vector<std::string>& modules) {
    if (modules.empty()) return;
    for (const NodeId node : graph_.nodes()) {
      const std::string_view path = graph_.module().text(graph_[node].module_path);
      plan_.excluded[node] =
          phases_.is_backward(node) &&
          std::ranges::any_of(modules, [path](const std::string& module) { return is_within(path, module); });
    }
  }

  void find_sizes() {
    for (const NodeId node : graph_.nodes()) {
      if (plan_.excluded[node] || !asks_for_sizes_alone(graph_, phases_, node)) continue;
      if (!any_input(graph_, node, [this](NodeId input) { return decisions_.of[input].recompute; })) continue;
      plan_.sizes.push_back(node);
      plan_.is_size[node] = true;
    }
  }

  std::vector<std::vector<NodeId>> regions() const {
    std::vector<std::vector<NodeId>> result;
    IdMap<NodeId, bool> depends(graph_.num_ids(), false);
    const bool use_phase_annotation = any_custom_phase();
    bool open = false;
    for (const NodeId node : graph_.nodes()) {
      if (graph_[node].kind == NodeKind::kPlaceholder || graph_[node].kind == NodeKind::kOutput) continue;
      bool inside = is_backward(node, use_phase_annotation);
      if (compat_ == Compat::kFxopt) {
        graph_.for_each_input(node, [&](NodeId input) { inside = inside || depends.get(input); });
        depends[node] = inside;
      }
      if (inside) {
        if (!open) result.emplace_back();
        result.back().push_back(node);
      }
      open = inside;
    }
    return result;
  }

  bool any_custom_phase() const {
    return compat_ == Compat::kTorch && std::ranges::any_of(graph_.nodes(), [this](NodeId node) {
             return graph_[node].has(PhaseMarker::kCustomPhaseBackward);
           });
  }

  bool is_backward(NodeId node, bool use_phase_annotation) const {
    if (compat_ == Compat::kFxopt || !phases_.has_markers) return phases_.is_backward(node);
    const PhaseMarker marker =
        use_phase_annotation ? PhaseMarker::kCustomPhaseBackward : PhaseMarker::kAutogradBackward;
    return graph_[node].has(marker) || graph_[node].has(PhaseMarker::kInferred);
  }

  bool reads_copy(NodeId consumer) const {
    return any_input(graph_, consumer, [this](NodeId input) { return is_copied(input); });
  }

  bool is_copied(NodeId node) const { return copied_in_[node] == region_number_; }

  // A node to visit while planning a step. `by_copy` is false if only the consumer reads the node.
  struct Wanted {
    NodeId node;
    bool by_copy = false;
  };

  // Plans the copies that `consumer` needs and that no earlier node of the region needs. Uses an
  // explicit stack, because chains may be long.
  Result<RematStep> plan_step(NodeId consumer) {
    RematStep step;
    step.consumer = consumer;
    pending_.clear();
    want_inputs(consumer, false);
    while (!pending_.empty()) {
      const auto [node, by_copy] = take_last(pending_);
      if (is_copied(node)) continue;
      if (!is_on_reload(node, by_copy)) {
        if (!decisions_.of[node].recompute || is_view_of_saved(node, consumer)) continue;
        if (reloads_.is_offload(node)) {
          block_once(node, TagRule::kOffload, "offloaded", "saved: backward reloads it");
          continue;
        }
        if (!unrepeatable_.get(node).empty()) {
          if (on_error_ == OnError::kStop) return unrepeatable_error(node, consumer);
          plan_.blocked[node] = TagRule::kUnrepeatable;
          continue;
        }
      }
      if (!can_read_reloads(node, consumer) || !is_legal(node, consumer) || !can_wait_again(node)) continue;
      hoist_reloads(node, step);
      copied_in_[node] = region_number_;
      plan_.recomputed[node] = true;
      step.copies.push_back(node);
      want_inputs(node, true);
      if (!runs_collective(node)) continue;
      for (const NodeId wait : waits_for(graph_, node)) pending_.push_back({wait, true});
    }
    for (std::vector<NodeId>* nodes : {&step.hoisted, &step.copies}) {
      std::ranges::sort(*nodes, {}, [this](NodeId node) { return graph_.position(node); });
    }
    return step;
  }

  bool may_copy_for(NodeId reader, NodeId input) const {
    const TagDecision& decision = decisions_.of[input];
    return !reads_shape_alone(graph_, reader) || decision.rule == TagRule::kCut;
  }

  // Finds the values to be recomputed whose data, not only shapes, are read by the region and its
  // copies.
  void find_read_for_values(const std::vector<NodeId>& region) {
    std::vector<NodeId> readers;
    for (const NodeId consumer : region) {
      if (!plan_.excluded[consumer] && !plan_.is_size[consumer]) readers.push_back(consumer);
    }
    while (!readers.empty()) {
      const NodeId reader = take_last(readers);
      graph_.for_each_input(reader, [&](NodeId input) {
        const bool is_new = decisions_.of[input].recompute && read_in_[input] != region_number_;
        if (!is_new || !may_copy_for(reader, input)) return;
        read_in_[input] = region_number_;
        readers.push_back(input);
      });
    }
  }

  // If only the shape of a value is read, the value is not recomputed, and the consumer reads the
  // forward value.
  void want_inputs(NodeId reader, bool by_copy) {
    graph_.for_each_input(reader, [&](NodeId input) {
      const bool is_for_shape = compat_ == Compat::kFxopt && decisions_.of[input].recompute &&
                                read_in_[input] != region_number_ && !may_copy_for(reader, input);
      if (is_for_shape) return read_for_shape_.push_back(input);
      pending_.push_back({input, by_copy});
    });
  }

  bool runs_collective(NodeId node) const {
    return compat_ == Compat::kFxopt && graph_[node].is_call() && graph_.op(node).has(Effect::kCollective);
  }

  // A collective is copied together with its waits. Otherwise the copy or the original would never
  // be waited for.
  bool can_wait_again(NodeId node) {
    if (!runs_collective(node)) return true;
    for (const NodeId wait : waits_for(graph_, node)) {
      const bool is_backward = phases_.is_backward(wait);
      if (!is_backward && decisions_.of[wait].recompute && plan_.blocked.get(wait) == TagRule::kNone) continue;
      block_once(node, TagRule::kUnrepeatable, "partly-saved",
                 is_backward ? "saved: the wait for this collective is in backward"
                             : "saved: another result of this collective is saved");
      return false;
    }
    return true;
  }

  // Whether the node is a view of an offloaded value that a copy reads. The copy then needs the
  // same view of the reload.
  bool is_on_reload(NodeId node, bool by_copy) const {
    return by_copy && reloads_.offloaded_under(node).is_valid() && is_pure_view(node);
  }

  bool is_pure_view(NodeId node) const {
    if (!graph_[node].is_call()) return false;
    const ViewKind view = view_of_call(graph_, node);
    return view != ViewKind::kNone && view != ViewKind::kIdentity && graph_.op(node).is_pure();
  }

  // Whether a copy of `node` can read the reloads of the offloaded values that `node` reads.
  bool can_read_reloads(NodeId node, NodeId consumer) {
    if (reloads_.empty()) return true;
    bool can = true;
    graph_.for_each_input(node, [&](NodeId input) {
      const NodeId under = reloads_.offloaded_under(input);
      const NodeId offloaded = reloads_.of(input).is_valid() ? input : under;
      if (!offloaded.is_valid()) return;
      const bool follows = !under.is_valid() || is_pure_view(input) || decisions_.of[input].recompute;
      can = can && follows && reloads_.to_hoist(offloaded, consumer).has_value();
    });
    if (!can)
      block_once(node, TagRule::kOffload, "offloaded",
                 "saved: its operand is offloaded, and a recomputed copy could not use the reloaded operand");
    return can;
  }

  void hoist_reloads(NodeId node, RematStep& step) {
    if (reloads_.empty()) return;
    graph_.for_each_input(node, [&](NodeId input) {
      if (!reloads_.of(input).is_valid()) return;
      const std::optional<std::vector<NodeId>> chain = reloads_.to_hoist(input, step.consumer);
      for (const NodeId link : *chain) {
        if (hoisted_[link]) continue;  // already before an earlier reader
        hoisted_[link] = true;
        step.hoisted.push_back(link);
      }
    });
  }

  // True if recomputing the view would free no memory, because its storage belongs to a value that
  // is not recomputed.
  bool is_view_of_saved(NodeId node, NodeId consumer) {
    if (compat_ != Compat::kFxopt) return false;
    if (decisions_.copies_views) return is_part_of_saved(node, consumer);
    for (const BufferId id : facts_.storages.buffers(node)) {
      const Buffer& buffer = facts_.storages.buffer(id);
      if (buffer.source != BufferSource::kNode || buffer.producer == node) continue;
      if (decisions_.of[buffer.producer].recompute && !is_copied(buffer.producer)) {
        static_cast<void>(is_legal(buffer.producer, consumer));
      }
    }
    return is_view_of_kept(facts_, plan_, node);
  }

  // A result of a call is recomputed only with the call.
  bool is_part_of_saved(NodeId node, NodeId consumer) {
    const NodeId whole = whole_of(graph_, node);
    return whole.is_valid() && graph_[whole].is_call() &&
           (!decisions_.of[whole].recompute || !is_legal(whole, consumer));
  }

  struct Obstacle {
    TagRule rule = TagRule::kNone;
    std::string_view code, text;
  };

  bool is_legal(NodeId node, NodeId consumer) {
    if (plan_.blocked.get(node) != TagRule::kNone) return false;
    const Obstacle obstacle = find_obstacle(node, consumer);
    if (obstacle.rule == TagRule::kNone) return true;
    if (compat_ == Compat::kTorch) {
      say_wrong_once(node, obstacle);
      return true;
    }
    block_once(node, obstacle.rule, obstacle.code, "saved: " + std::string(obstacle.text));
    return false;
  }

  Obstacle find_obstacle(NodeId node, NodeId consumer) const {
    const TagRule rule = facts_.repeats.obstacle(node, consumer);
    if (rule == TagRule::kNone) return {};
    if (rule == TagRule::kReturned) {
      return {rule, "returned-alias",
              "several outputs of the graph share this value's memory, and backward computes one of these outputs"};
    }
    return {rule, "mutated",
            facts_.repeats.is_written_later(node)
                ? "an op writes to the value in place, and a recomputed value would lack the write"
                : "an operand is changed in place before the recompute, so a recomputed value may differ"};
  }

  // Warns that PyTorch makes the copy although it may have other values.
  void say_wrong_once(NodeId node, const Obstacle& obstacle) {
    if (is_said_wrong_[node]) return;
    is_said_wrong_[node] = true;
    plan_.blocked_remarks.push_back(
        {node, kNotExact, "recomputed as PyTorch does, which is not exact here: " + std::string(obstacle.text)});
  }

  void block_once(NodeId node, TagRule rule, std::string_view code, std::string text) {
    if (plan_.blocked[node] != TagRule::kNone) return;
    plan_.blocked[node] = rule;
    plan_.blocked_remarks.push_back({node, code, std::move(text)});
  }

  Error unrepeatable_error(NodeId node, NodeId consumer) const {
    return refused(graph_, node,
                   quoted(graph_, node) + " " + std::string(decisions_.wanted) + " and is needed by " +
                       quoted(graph_, consumer) + " in backward, but it " + std::string(unrepeatable_.get(node)),
                   std::string(decisions_.remedy), ErrorCode::kTagUnrepeatable);
  }

  const Graph& graph_;
  const RematFacts& facts_;
  Compat compat_;
  OnError on_error_;
  const PhaseMap& phases_ = facts_.phases;
  const TagDecisions& decisions_ = facts_.decisions;
  const Reloads& reloads_ = facts_.reloads;
  RematPlan plan_;
  uint32_t region_number_ = 0;
  IdMap<NodeId, uint32_t> copied_in_, read_in_;   // last region that copies the node; that reads its data
  IdMap<NodeId, std::string_view> unrepeatable_;  // the reason
  IdMap<NodeId, bool> hoisted_;
  IdMap<NodeId, bool> is_said_wrong_;
  std::vector<Wanted> pending_;
  std::vector<NodeId> read_for_shape_;  // to be recomputed, but read somewhere for the shape alone
};

}  // namespace

Result<RematPlan> plan_remat(const Graph& graph, const RematFacts& facts, const RematOptions& options) {
  return Planner(graph, facts, options, Planner::OnError::kStop).run();
}

RematPlan forecast_remat(const Graph& graph, const RematFacts& facts, const RematOptions& options) {
  return Planner(graph, facts, options, Planner::OnError::kPassOver).run().value();
}

}  // namespace fxopt
