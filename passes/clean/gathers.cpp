#include "passes/clean/gathers.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/alias/collectives.h"
#include "ir/alias/effects.h"
#include "ir/alias/order.h"
#include "ir/graph/module.h"
#include "ir/step/halves.h"
#include "ir/step/repeat.h"
#include "ir/step/unshard.h"
#include "ir/values/values.h"
#include "passes/pass/nodes.h"
#include "passes/pass/replacer.h"

namespace fxopt {
namespace {

constexpr std::string_view kNotProved = "the results were not proved equal";

UnshardMap unshards_of(const Graph& graph, Facts& facts, GatheredInputs inputs) {
  return find_unshards(
      graph, inputs == GatheredInputs::kAll ? placeholders_of(graph) : parameters_of(graph, facts.storages(), true),
      [](NodeId) { return true; });
}

// Forward values that backward reads.
IdMap<NodeId, bool> saved_values(const Graph& graph, const PhaseMap& phases) {
  IdMap<NodeId, bool> is_saved(graph.num_ids(), false);
  for (const NodeId node : graph.nodes()) {
    if (!graph[node].runs() || !phases.is_backward(node) || asks_for_sizes_alone(graph, phases, node)) continue;
    graph.for_each_input(node, [&](NodeId input) {
      if (!phases.is_backward(input)) is_saved[input] = true;
    });
  }
  return is_saved;
}

// Erases nodes of gathers that lost their last user by a merge.
void erase_left_over(Graph& graph, const IdMap<NodeId, bool>& is_part, const IdMap<NodeId, bool>& had_users,
                     const PhaseMap& phases, std::string_view pass) {
  Replacer replacer(graph, phases, pass);
  const IdMap<NodeId, bool> is_awaited = control_targets(graph);
  for (NodeId node = graph.last(); node.is_valid();) {
    const NodeId previous = graph.prev(node);
    const bool is_left = is_part.get(node) && had_users.get(node) && !graph.has_users(node);
    if (is_left && !is_held(graph, node) && !is_awaited.get(node)) replacer.erase_unread(node);
    node = previous;
  }
  replacer.finish();
}

// The parameters that a call gathers, in the order of its members. A bucket gathers several
// parameters.
std::vector<NodeId> gathered_by(const Graph& graph, const UnshardMap& unshards, NodeId gather) {
  std::vector<NodeId> parameters;
  std::set<NodeId> seen;
  std::vector<NodeId> stack = {gather};
  while (!stack.empty()) {
    const NodeId node = take_last(stack);
    if (!graph[node].is_call()) {
      parameters.push_back(node);
      continue;
    }
    std::vector<NodeId> inputs;
    graph.for_each_input(node, [&](NodeId input) {
      if (unshards.content.get(input) == UnshardContent::kShard && seen.insert(input).second) inputs.push_back(input);
    });
    stack.insert(stack.end(), inputs.rbegin(), inputs.rend());
  }
  return parameters;
}

// The forward gathers with a value that backward reads.
IdMap<NodeId, bool> saved_gathers(const Graph& graph, const PhaseMap& phases, const UnshardMap& unshards) {
  IdMap<NodeId, bool> is_saved = saved_values(graph, phases);
  for (NodeId node = graph.last(); node.is_valid(); node = graph.prev(node)) {
    const bool is_gathered = unshards.content.get(node) == UnshardContent::kGathered && !phases.is_backward(node);
    if (!is_gathered || !is_saved.get(node) || is_all_gather(graph, node)) continue;
    graph.for_each_input(node, [&](NodeId input) {
      if (unshards.content.get(input) == UnshardContent::kGathered) is_saved[input] = true;
    });
  }
  return is_saved;
}

// Reasons not to merge gathers with equal arguments. Computed once for all repeated gathers.
struct ApartFacts {
  const StorageMap& storages;
  RepeatRules repeats;
  IdMap<BufferId, bool> returned;

  ApartFacts(const Graph& graph, Facts& facts)
      : storages(facts.storages()), repeats(graph, facts.phases(), storages), returned(storages.num_buffers(), false) {
    for (const NodeId leaf : output_leaves(graph)) {
      for (const BufferId made : leaf.is_valid() ? storages.buffers(leaf) : std::span<const BufferId>()) {
        if (made.is_valid()) returned[made] = true;
      }
    }
  }

  bool is_returned(NodeId node) const {
    return std::ranges::any_of(storages.buffers(node),
                               [this](BufferId id) { return id.is_valid() && returned.get(id); });
  }
};

// The reason why the gather `other` is not merged with the earlier gather `first`.
std::string reason_apart(const Graph& graph, const ApartFacts& facts, NodeId first, NodeId other) {
  if (graph[first].target != graph[other].target) return "the operators differ";
  if (!(group_of_call(graph, first) == group_of_call(graph, other))) return "the process groups differ";
  if (stream_of(graph, first) != stream_of(graph, other)) return "the streams differ";
  const NodeId one = first_argument(graph, first), two = first_argument(graph, other);
  const Tensor* left = single_tensor(graph, one);
  const Tensor* right = single_tensor(graph, two);
  if (left != nullptr && right != nullptr && left->dtype != right->dtype) return "the data types differ";
  if (facts.storages.input_bytes_change(first, first, other)) return "a write changes the input between them";
  if (one != two) return "the inputs differ";
  if (graph[first].args.count != graph[other].args.count || graph[first].kwargs.count != graph[other].kwargs.count) {
    return "the arguments are given in different forms";
  }
  if (is_held(graph, other)) return "the later gather has a control dependency or an event";
  const bool is_written = facts.repeats.is_written_later(first) || facts.repeats.is_written_later(other);
  if (is_written) return "a later op writes to one of the results";
  if (facts.is_returned(first) && facts.is_returned(other)) return "the graph returns both results";
  return std::string(kNotProved);
}

// Finds gathers of a parameter that the same half (forward or backward) gathered before, or that
// forward gathered and saves for backward.
class ApartFinder {
 public:
  ApartFinder(const Graph& graph, Facts& facts, PassResult& result) : graph_(graph), facts_(facts), result_(result) {}

  void run() {
    for (const NodeId node : graph_.nodes()) {
      if (graph_[node].is_call() && unshards_.is_part(node) && is_all_gather(graph_, node)) look_at(node);
    }
    result_.note("gathers-apart", count_);
    if (count_ == 0) return;
    std::string text;
    for (const auto& [reason, number] : reasons_) {
      text += (text.empty() ? "" : "; ") + reason + (reasons_.size() == 1 ? "" : " (" + std::to_string(number) + ")");
    }
    result_.warn(graph_, repeated_, "gathers-apart",
                 count_with_first(count_, " repeated gather of a parameter is not merged",
                                  " repeated gathers of parameters are not merged",
                                  "%" + std::string(graph_.name_of(repeated_))) +
                     (reasons_.size() == 1 ? ". Reason: " : ". Reasons: ") + text);
  }

 private:
  struct First {
    NodeId gather;
    bool is_bucket = false;
  };

  void look_at(NodeId node) {
    const bool is_backward = phases_.is_backward(node);
    const std::vector<NodeId> parameters = gathered_by(graph_, unshards_, node);
    First before;
    for (const NodeId parameter : parameters) {
      const auto [known, is_new] = first_[is_backward].try_emplace(parameter, First{node, parameters.size() > 1});
      if (!is_new && known->second.gather != node && !before.gather.is_valid()) before = known->second;
      const auto saved = first_[false].find(parameter);
      const bool is_saved = is_backward && saved != first_[false].end() && is_saved_.get(saved->second.gather);
      if (is_saved && !before.gather.is_valid()) before = saved->second;
    }
    if (before.gather.is_valid()) remark(node, before, before.is_bucket || parameters.size() > 1);
  }

  void remark(NodeId node, const First& before, bool is_in_bucket) {
    std::string reason =
        is_in_bucket ? "this gather, or the earlier gather of the same parameter, is in a bucket with other parameters"
                     : reason_apart(graph_, apart_, before.gather, node);
    const bool is_across = phases_.is_backward(node) && !phases_.is_backward(before.gather);
    if (is_across && reason == kNotProved) reason = "forward saves another layout of the parameter";
    result_.remark(graph_, node, "gather-apart",
                   "not merged with %" + std::string(graph_.name_of(before.gather)) +
                       ", which gathers the same parameter: " + reason);
    ++reasons_[reason];
    if (count_++ == 0) repeated_ = node;
  }

  const Graph& graph_;
  Facts& facts_;
  PassResult& result_;
  const PhaseMap& phases_ = facts_.phases();
  UnshardMap unshards_ = unshards_of(graph_, facts_, GatheredInputs::kParameters);
  IdMap<NodeId, bool> is_saved_ = saved_gathers(graph_, phases_, unshards_);
  ApartFacts apart_{graph_, facts_};
  std::array<std::map<NodeId, First>, 2> first_;  // by half and parameter
  std::map<std::string, int64_t> reasons_;
  NodeId repeated_;
  int64_t count_ = 0;
};

}  // namespace

GatherClasses gather_classes(const Graph& graph, Facts& facts, GatheredInputs inputs, bool across_phases) {
  const UnshardMap unshards = unshards_of(graph, facts, inputs);
  GatherClasses classes{IdMap<NodeId, uint32_t>(graph.num_ids(), 0), IdMap<NodeId, bool>(graph.num_ids(), false), 2};
  for (const NodeId node : graph.nodes()) {
    classes.is_part[node] = unshards.is_part(node) && graph[node].is_call();
    const bool is_second = !across_phases && facts.phases().is_backward(node);
    classes.of[node] = !classes.is_part[node] ? classes.next++ : is_second ? 1 : 0;
  }
  return classes;
}

CseOptions equal_gathers() {
  CseOptions options;
  options.collectives = true;
  return options;
}

Result<PassResult> merge_gathers(Graph& graph, bool across, PassContext& context, std::string_view pass) {
  PassResult result;
  Facts& facts = context.facts.of(graph);
  IdMap<NodeId, bool> had_users(graph.num_ids(), false);
  for (const NodeId node : graph.nodes()) had_users[node] = graph.has_users(node);
  // Merge within each half first, because only the first of several equal backward nodes is
  // compared with an equal forward node.
  for (const bool crosses : across ? std::vector<bool>{false, true} : std::vector<bool>{false}) {
    const GatherClasses classes = gather_classes(graph, facts, GatheredInputs::kParameters, crosses);
    const PhaseMap phases = facts.phases();
    const IdMap<NodeId, bool> is_saved = crosses ? saved_values(graph, phases) : IdMap<NodeId, bool>();
    const auto may_merge = [&](NodeId kept, NodeId node) {
      if (phases.is_backward(kept) == phases.is_backward(node)) return true;
      return !phases.is_backward(kept) && is_saved.get(kept);
    };
    const Result<PassResult> merged = cse_within(graph, classes.of, equal_gathers(), context, may_merge);
    if (!merged.ok()) return merged;
    const auto found = merged->counters().find("merged");
    if (found == merged->counters().end()) continue;
    result.count("gathers-merged", found->second);
    erase_left_over(graph, classes.is_part, had_users, phases, pass);
    graph.prune_control();
    facts.forget();
  }
  return result;
}

void remark_gathers_apart(const Graph& graph, Facts& facts, PassResult& result) {
  ApartFinder(graph, facts, result).run();
}

}  // namespace fxopt
