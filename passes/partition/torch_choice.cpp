// PyTorch's partitioners (torch/_functorch/partitioners.py, 2.15): default_partition, and the
// minimal cut (classify_nodes, solve_min_cut). Sweeps in linear time replace two searches of the
// original:
//
//   is_materialized_backwards   a search through views from each node   -> one sweep from the end
//   find_first_unfusible        a heap from each node's users           -> one sweep from the end
//
// Comments use the names of the original.

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/saturate.h"
#include "ir/alias/effects.h"
#include "ir/alias/sizes.h"
#include "ir/step/infer_roles.h"
#include "ir/values/values.h"
#include "passes/partition/choice.h"
#include "passes/partition/save_network.h"
#include "passes/pass/nodes.h"

namespace fxopt {
namespace {

// Saves a value that cannot be repeated, such as a write or a draw. PyTorch recomputes these
// values: its graphs have no writes, and its recomputed draws get their own random state.
void save_unrepeatable(const Graph& graph, EffectMap& effects, NodeId node, bool is_forward, TagDecisions& decisions) {
  const std::string_view reason = why_unrepeatable(graph, node, effects);
  if (reason.empty()) return;
  if (graph[node].tag == Tag::kMustRecompute) {
    decisions.unrepeatable.push_back({node, reason});
    return;
  }
  decisions.of[node].recompute = false;
  decisions.of[node].rule = TagRule::kUnrepeatable;
  if (is_forward) {
    decisions.remarks.push_back(
        {node, "unrepeatable", "saved, although PyTorch recomputes it: it " + std::string(reason)});
  }
}

// True for a node of a checkpoint region that need not be saved. The graph does not return the
// value of such a node, and backward reads only its sizes or does not read it.
bool goes_with_its_region(const Graph& graph, const PhaseMap& phases, NodeId node) {
  if (graph[node].tag == Tag::kMustSave || !region_key(graph, node, TagRules::kTorch).exists) return false;
  return std::ranges::none_of(graph.users(node), [&](NodeId user) {
    const bool is_outside = graph[user].kind == NodeKind::kOutput || phases.is_backward(user);
    return is_outside && graph.value(user).kind != ValueKind::kSymbolic;
  });
}

constexpr int64_t kFar = 1'000'000'000;  // dist_from_bw of a node that backward does not need
constexpr uint32_t kNowhere = std::numeric_limits<uint32_t>::max();

class TorchChooser {
 public:
  TorchChooser(const Graph& graph, Facts& facts, const PassContext& context, size_t num_forward_outputs)
      : graph_(graph),
        facts_(facts),
        values_(sizes_of_symbols(graph.module(), context.measure.memory.symbols)),
        num_forward_outputs_(num_forward_outputs) {}

  Result<Choice> run() {
    classify();
    measure_distances();
    find_materialized();
    force_sources_of_mutations();
    for (const NodeId node : graph_.nodes()) {
      if (graph_[node].kind != NodeKind::kOutput) add(node);
    }
    ban_used_far_apart();
    ban_long_chains();
    Result<SaveNetwork::Cut> cut = network_.solve();
    if (!cut.ok()) return std::move(cut).error();
    Choice choice;
    choice.cost = cut->cost;
    for (const NodeId node : graph_.nodes()) {
      if (graph_[node].is_call() && !in_tangents_closure_[node]) decide(node, cut->is_after[node]);
    }
    choice.into_forward = find_into_forward();
    choice.decisions = std::move(decisions_);
    return choice;
  }

 private:
  void decide(NodeId node, bool is_after) {
    TagDecision& decision = decisions_.of[node];
    if (decision.rule == TagRule::kNone) decision.rule = TagRule::kCut;
    decision.recompute = is_after;
    const NodeId whole = whole_of(graph_, node);
    if (whole.is_valid() && decisions_.of.get(whole).rule == TagRule::kUnrepeatable) decision.recompute = false;
    const bool is_copied = is_after && (required_fw_.get(node) || !phases_.is_backward(node));
    if (is_copied) save_unrepeatable(graph_, effects_, node, !phases_.is_backward(node), decisions_);
  }

  // The nodes that are marked backward, but that forward must compute for its saved values, with
  // all their operands.
  std::vector<NodeId> find_into_forward() const {
    std::vector<NodeId> found;
    IdMap<NodeId, bool> is_read(graph_.num_ids(), false);
    for (NodeId node = graph_.last(); node.is_valid(); node = graph_.prev(node)) {
      if (!graph_[node].is_call() || in_tangents_closure_[node] || !phases_.is_backward(node)) continue;
      if (decisions_.of.get(node).recompute && !is_read.get(node)) continue;
      found.push_back(node);
      graph_.for_each_input(node, [&is_read](NodeId input) { is_read[input] = true; });
    }
    return found;
  }

  // -- predicates of the original

  bool is_fusible_op(NodeId node) const {
    return graph_[node].is_call() &&
           (graph_.op(node).in(OpSet::kRecomputable) || graph_.op(node).in(OpSet::kPartitionerRandom));
  }
  bool is_view(NodeId node) const { return graph_[node].is_call() && graph_.op(node).in(OpSet::kPartitionerView); }
  bool is_getitem(NodeId node) const { return graph_[node].is_call() && graph_.op(node).name == "operator.getitem"; }

  bool is_fusible(NodeId a, NodeId b) const {
    if (graph_[b].is_call() && graph_.op(b).name.starts_with("aten.cat.")) return true;
    if (is_getitem(a)) {
      const NodeId from = first_argument(graph_, a);
      constexpr std::string_view kTriton = "higher_order.triton_kernel_wrapper_functional";
      if (from.is_valid() && graph_[from].is_call() && graph_.op(from).name == kTriton) return false;
    }
    return is_fusible_op(a) && is_fusible_op(b);
  }

  // By tag. False at region boundaries, where values are saved.
  bool must_recompute(NodeId node) const { return decisions_.of.get(node).recompute; }

  bool is_collective(NodeId node) const {
    return graph_[node].is_call() && graph_.op(node).name.starts_with("_c10d_functional.");
  }

  bool is_mutable(NodeId node) const {
    return graph_[node].is_call() && graph_.op(node).schema.has_value() && graph_.op(node).schema->mutates();
  }

  bool must_be_in_backward(NodeId node) const {
    return graph_[node].has(PhaseMarker::kMustBeInBackward) ||
           (graph_[node].has(PhaseMarker::kIsBackward) && is_mutable(node));
  }

  // The bytes of the node's value. A symbol counts as 1 byte, and a node without a recorded value
  // as 0 bytes.
  int64_t size_of(NodeId node) const {
    const Value& value = graph_.value(node);
    if (value.kind == ValueKind::kSymbolic || value.kind == ValueKind::kScalar) return 1;
    int64_t sum = 0;
    for_each_tensor(graph_, graph_[node].value, [&](ValueId, const Tensor& tensor) {
      const std::optional<int64_t> elements = tensor_elements(graph_.module(), tensor, values_);
      int64_t bytes = 0;
      if (!elements.has_value() || __builtin_mul_overflow(*elements, element_size(tensor.dtype), &bytes)) bytes = 4096;
      sum = saturating_add(sum, bytes);
    });
    return sum;
  }

  // -- classify_nodes

  void classify() {
    IdMap<NodeId, bool> is_valid(graph_.num_ids(), false);
    for (const NodeId node : graph_.nodes()) {
      const NodeKind kind = graph_[node].kind;
      if (kind == NodeKind::kOutput) continue;
      bool is_backward = kind == NodeKind::kPlaceholder ? is_tangent(graph_, node) : must_be_in_backward(node);
      bool can_be_forward = kind != NodeKind::kPlaceholder || !is_backward;
      if (kind != NodeKind::kPlaceholder && must_be_in_backward(node)) can_be_forward = false;
      graph_.for_each_input(node, [&](NodeId input) {
        is_backward = is_backward || in_tangents_closure_[input];
        can_be_forward = can_be_forward && is_valid[input];
      });
      in_tangents_closure_[node] = required_bw_[node] = is_backward;
      is_valid[node] = can_be_forward;
    }
    for (size_t i = num_forward_outputs_; i < leaves_.size(); ++i) {
      if (leaves_[i].is_valid()) required_bw_[leaves_[i]] = true;
    }
    // The nodes that forward keeps after dead-code elimination.
    for (size_t i = 0; i < num_forward_outputs_ && i < leaves_.size(); ++i) {
      if (leaves_[i].is_valid()) required_fw_[leaves_[i]] = true;
    }
    for (NodeId node = graph_.last(); node.is_valid(); node = graph_.prev(node)) {
      if (!is_valid.get(node)) continue;
      const bool is_kept = graph_[node].kind == NodeKind::kPlaceholder || is_impure(node);
      if (!is_kept && !required_fw_.get(node)) continue;
      required_fw_[node] = true;
      graph_.for_each_input(node, [this](NodeId input) { required_fw_[input] = true; });
    }
    for (const NodeId node : graph_.nodes()) {
      if (!required_fw_.get(node)) continue;
      order_[node] = static_cast<uint32_t>(forward_.size());
      forward_.push_back(node);
    }
  }

  // A draw of backward stays in backward, as under Dynamo, where draws do not count as impure.
  bool is_impure(NodeId node) {
    if (!graph_[node].is_call()) return false;
    constexpr Effect kImpure = Effect::kMutates | Effect::kWaits | Effect::kAsserts | Effect::kBarrier;
    const Effect effects = graph_.op(node).effects;
    return has_effect(effects, kImpure) || (has_effect(effects, Effect::kRandom) && !phases_.is_backward(node));
  }

  void measure_distances() {
    for (NodeId node = graph_.last(); node.is_valid(); node = graph_.prev(node)) {
      if (graph_[node].kind == NodeKind::kOutput) continue;
      if (!required_fw_.get(node)) {
        distance_[node] = 0;
        continue;
      }
      int64_t least = kFar;
      for_each_user(graph_, node, [&](NodeId user) { least = std::min(least, distance_.get(user) + 1); });
      distance_[node] = least;
    }
  }

  // is_materialized_backwards: whether a node outside of forward reads the value, directly or
  // through views, and is not fused with it.
  void find_materialized() {
    for (NodeId node = graph_.last(); node.is_valid(); node = graph_.prev(node)) {
      bool found = false;
      for_each_user(graph_, node, [&](NodeId user) {
        found =
            found || (!required_fw_.get(user) && !is_fusible(node, user)) || (is_view(user) && read_unfused_.get(user));
      });
      read_unfused_[node] = found;
    }
  }

  // force_save_bw_mutation_src: handles the copies at the end of the graph.
  void force_sources_of_mutations() {
    IdMap<NodeId, bool> is_target(graph_.num_ids(), false);
    for (NodeId node = graph_.last(); node.is_valid(); node = graph_.prev(node)) {
      if (graph_[node].kind == NodeKind::kOutput) continue;
      if (!graph_[node].is_call() || graph_.op(node).name != "aten.copy_.default") return;
      const NodeId target = first_argument(graph_, node);
      const Arg* source = graph_.arg(node, 1);
      if (!target.is_valid() || source == nullptr || !source->is(ArgKind::kNode)) continue;
      if (graph_[node].has(PhaseMarker::kMustBeInBackward)) is_target[target] = true;
      if (graph_[node].has(PhaseMarker::kMustBeInForward) && is_target.get(target)) force(source->as_node());
    }
  }

  // Makes the node MUST_SAVE, whatever its tag.
  void force(NodeId node) {
    is_forced_[node] = true;
    decisions_.of[node].recompute = false;
    decisions_.of[node].rule = TagRule::kMustSave;
  }

  // -- should_ban_recomputation

  bool should_ban(NodeId node) const {
    if (!graph_[node].is_call() || is_getitem(node)) return false;
    const TagRule rule = decisions_.of.get(node).rule;
    const bool is_tagged = graph_[node].tag == Tag::kMustSave || rule == TagRule::kRegionBoundary;
    if (is_tagged || is_collective(node) || is_forced_.get(node)) return true;
    const Op& op = graph_.op(node);
    if (op.name == "aten.lift_fresh_copy.default" || op.name == "aten.lift_fresh.default") return false;
    if (!op.in(OpSet::kRecomputable)) return true;
    if (!is_view(node) && read_unfused_.get(node)) return true;
    // Bans reductions: calls whose result has less than a quarter of the bytes of its operands.
    int64_t given = 0;
    for (const Arg& arg : graph_.pool().args(graph_[node].args)) {
      if (arg.is(ArgKind::kNode)) given = saturating_add(given, size_of(arg.as_node()));
    }
    const int64_t made = size_of(node);
    return made < given / 4 || (made == given / 4 && given % 4 != 0);
  }

  // ban_recomputation_if_allowed
  void ban(NodeId node) {
    const Value& value = graph_.value(node);
    const bool is_float = value.kind == ValueKind::kSymbolic && value.symbol_type == SymbolType::kFloat;
    if (is_view(node) || must_recompute(node) || is_float || is_banned_.get(node)) return;
    is_banned_[node] = true;
    network_.forbid_copy(node);
  }

  // -- solve_min_cut

  void add(NodeId node) {
    if (required_bw_.get(node)) {
      if (in_tangents_closure_.get(node)) {
        network_.make_in_backward(node);
        return;
      }
      network_.need(node);
    }
    if (must_recompute(node)) {
      network_.make_in_backward(node);
      return;
    }
    const bool is_input = graph_[node].kind == NodeKind::kPlaceholder;
    if (is_input || (required_fw_.get(node) && should_ban(node))) ban(node);
    network_.save_for(node, weight(node));
    for_each_user(graph_, node, [&](NodeId user) {
      if (graph_[user].kind != NodeKind::kOutput) network_.feed(node, user);
    });
  }

  int64_t weight(NodeId node) const {
    const Value& value = graph_.value(node);
    if (value.kind == ValueKind::kSymbolic) return value.symbol_type == SymbolType::kFloat ? 4 : 1;
    if (value.kind == ValueKind::kOpaque) return 0;
    if (value.kind != ValueKind::kTensor) return SaveNetwork::kNever;
    if (is_static(node)) return 0;
    const double near =
        std::pow(1.1, static_cast<double>(std::max<int64_t>(std::min<int64_t>(distance_.get(node), 100), 1)));
    const double scaled = static_cast<double>(size_of(node)) * near;
    constexpr double kMost = 1e17;
    const int64_t bytes = static_cast<int64_t>(std::min(scaled, kMost));
    return is_materialized(node) ? bytes : 2 * bytes;
  }

  // treat_parameters_as_free_to_save: AOTAutograd records parameters, buffers and inputs with a
  // static address.
  bool is_static(NodeId node) const {
    const InputSpec* spec = recorded_input(graph_, node);
    return spec != nullptr &&
           (spec->static_address || spec->role == InputRole::kParameter || spec->role == InputRole::kBuffer);
  }

  bool is_materialized(NodeId node) const {
    bool found = graph_[node].kind == NodeKind::kPlaceholder;
    for_each_user(graph_, node, [&](NodeId user) { found = found || !is_fusible(node, user); });
    return found;
  }

  // ban_if_used_far_apart: if a value is used before and after an unfused node, the later fused
  // users are not recomputed. find_first_unfusible(users) is the first place in forward at which a
  // chain of fused consumers of `users` reaches an unfused consumer. The sweep finds it for each
  // user.
  void ban_used_far_apart() {
    IdMap<NodeId, uint32_t> first_unfusible(graph_.num_ids(), kNowhere);
    for (auto it = forward_.rbegin(); it != forward_.rend(); ++it) {
      uint32_t first = kNowhere;
      for_each_user(graph_, *it, [&](NodeId user) {
        if (!required_fw_.get(user)) return;
        first = std::min(first, is_fusible(*it, user) ? first_unfusible.get(user) : order_.get(user));
      });
      first_unfusible[*it] = first;
    }
    for (const NodeId used : forward_) {
      uint32_t last = 0, first = kNowhere;
      for_each_user(graph_, used, [&](NodeId user) {
        if (!required_fw_.get(user)) return;
        last = std::max(last, order_.get(user));
        first = std::min(first, first_unfusible.get(user));
      });
      if (first > last) continue;
      for (const NodeId user : graph_.users(used)) {
        if (required_fw_.get(user) && order_.get(user) > first && is_fusible(used, user)) ban(user);
      }
    }
  }

  // ban_if_long_fusible_chains. As in the original, a value is queued each time it is found.
  void ban_long_chains() {
    constexpr uint32_t kLong = 100;
    IdMap<NodeId, bool> visited(graph_.num_ids(), false);
    for (const NodeId start : forward_) {
      std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> pending;
      pending.push(order_.get(start));
      while (!pending.empty()) {
        const NodeId node = forward_[pending.top()];
        pending.pop();
        if (visited.get(node)) continue;
        visited[node] = true;
        if (order_.get(node) > order_.get(start) + kLong && pending.empty()) {
          ban(node);
          break;
        }
        for (const NodeId user : graph_.users(node)) {
          if (required_fw_.get(user) && is_fusible(node, user) && !is_banned_.get(user)) pending.push(order_.get(user));
        }
      }
    }
  }

  const Graph& graph_;
  Facts& facts_;
  SymbolValues values_;
  size_t num_forward_outputs_;
  const PhaseMap& phases_ = facts_.phases();
  EffectMap& effects_ = facts_.effects();
  TagDecisions decisions_ = decide_tags(graph_, phases_, facts_.storages(), effects_, TagRules::kTorch);
  std::vector<NodeId> leaves_ = output_leaves(graph_);
  IdMap<NodeId, bool> in_tangents_closure_, required_bw_, required_fw_, read_unfused_, is_forced_, is_banned_;
  IdMap<NodeId, int64_t> distance_{graph_.num_ids(), kFar};
  std::vector<NodeId> forward_;                                // nodes required in forward, in order
  IdMap<NodeId, uint32_t> order_{graph_.num_ids(), kNowhere};  // their places in forward_
  SaveNetwork network_{graph_};
};

}  // namespace

Choice choose_default_as_torch(const Graph& graph, Facts& facts) {
  const PhaseMap& phases = facts.phases();
  Choice choice;
  choice.decisions = decide_tags(graph, phases, facts.storages(), facts.effects(), TagRules::kTorch);
  choice.decisions.copies_views = true;
  for (const NodeId node : graph.nodes()) {
    TagDecision& decision = choice.decisions.of[node];
    const bool is_decided =
        graph[node].is_call() && !phases.is_backward(node) && graph.value(node).kind != ValueKind::kSymbolic;
    if (!is_decided) {
      decision.recompute = false;
      continue;
    }
    if (!decision.recompute && goes_with_its_region(graph, phases, node)) {
      decision.recompute = true;
      decision.rule = TagRule::kCut;
    }
    if (decision.recompute) save_unrepeatable(graph, facts.effects(), node, true, choice.decisions);
  }
  return choice;
}

Result<Choice> choose_min_cut_as_torch(const Graph& graph, Facts& facts, const PassContext& context,
                                       size_t num_forward_outputs) {
  return TorchChooser(graph, facts, context, num_forward_outputs).run();
}

}  // namespace fxopt
