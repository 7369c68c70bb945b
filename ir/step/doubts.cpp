#include "ir/step/doubts.h"

#include <algorithm>
#include <span>

#include "core/hash.h"
#include "core/hash_table.h"
#include "core/text.h"
#include "ir/alias/effects.h"
#include "ir/alias/regions.h"
#include "ir/alias/storages.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

std::string named(const Graph& graph, NodeId node) { return "%" + std::string(graph.name_of(node)); }

bool redraws(const Graph& graph, NodeId node) {
  return graph[node].is_call() && !graph.inputs(node).empty() && is_random_call(graph, node) &&
         !is_recorded_draw(graph, node);
}

// Numbers nodes. Two nodes have the same number if the same calls on the same inputs compute them.
// Random draws are treated like other calls. A node that may write has a unique number.
class Congruence {
 public:
  explicit Congruence(const Graph& graph) : graph_(graph), numbers_(graph.num_ids(), 0) {
    for (const NodeId node : graph.nodes()) numbers_[node] = number(node);
  }
  uint64_t operator[](NodeId node) const { return numbers_.get(node); }

 private:
  uint64_t number(NodeId node) const {
    const Node& record = graph_[node];
    if (record.kind == NodeKind::kGetAttr) return hash_combine(1, record.target.index());
    const bool is_plain = record.kind == NodeKind::kCallFunction &&
                          is_pure(without(graph_.op(node).effects, Effect::kRandom)) && graph_.op(node).writes.empty();
    if (!is_plain) return hash_combine(2, node.index());
    return add_args(add_args(hash_combine(3, record.target.index()), record.args), record.kwargs);
  }

  uint64_t add_args(uint64_t seed, ArgRange range) const {
    seed = hash_combine(seed, range.count);
    for (const Arg& arg : graph_.pool().args(range)) {
      seed = hash_combine(seed, static_cast<uint64_t>(arg.kind()));
      if (arg.is(ArgKind::kNode)) {
        seed = hash_combine(seed, numbers_.get(arg.as_node()));
      } else if (arg.has_children()) {
        seed = add_args(seed, arg.range());
      } else {
        seed = hash_combine(seed, arg.as_bits());
      }
    }
    return seed;
  }

  const Graph& graph_;
  IdMap<NodeId, uint64_t> numbers_;
};

void find_drawn_twice(const Graph& graph, const PhaseMap& phases, const StorageSource& storages,
                      std::vector<GraphDoubt>& doubts) {
  const auto nodes = graph.nodes();
  const auto in_phase = [&](bool is_backward) {
    return std::ranges::any_of(
        nodes, [&](NodeId node) { return phases.is_backward(node) == is_backward && redraws(graph, node); });
  };
  if (!in_phase(true) || !in_phase(false)) return;
  const Congruence same(graph);
  HashMap<uint64_t, NodeId> drawn;
  NodeId first, original;
  size_t count = 0;
  for (const NodeId node : nodes) {
    if (!redraws(graph, node)) continue;
    if (!phases.is_backward(node)) {
      drawn.emplace(same[node], node);
      continue;
    }
    const auto found = drawn.find(same[node]);
    if (found == drawn.end() || storages().input_bytes_change(node, found->second, node)) continue;
    if (count++ == 0) first = node, original = found->second;
  }
  if (count == 0) return;
  doubts.push_back({"drawn-twice", first,
                    named(graph, first) + " in backward repeats the random draw of " + named(graph, original) +
                        " in forward, but the draw has no recorded rng_slot. The repeated draw returns other numbers, "
                        "and gradients are computed from these numbers" +
                        (count > 1 ? "; " + count_text(count, "draw") + " in total" : "")});
}

void find_region_inputs(const Graph& graph, std::vector<GraphDoubt>& doubts) {
  if (!has_regions(graph.module())) return;
  HashMap<StorageId, NodeId> seen;
  NodeId first;
  size_t count = 0;
  for (const NodeId node : placeholders_of(graph)) {
    if (!may_be_of_region(graph, node)) continue;
    const Tensor* tensor = single_tensor(graph, node);
    if (tensor == nullptr || !tensor->storage.is_valid() || seen.emplace(tensor->storage, node).second) continue;
    if (count++ == 0) first = node;
  }
  if (count == 0) return;
  doubts.push_back(
      {"region-inputs", first,
       count_text(count, "input") +
           " counted as separate memory, although the file records one storage for several inputs. PyTorch records "
           "the results of `nested_compile_region` in this way"});
}

}  // namespace

std::vector<GraphDoubt> find_doubts(const Graph& graph, const PhaseMap& phases, const StorageSource& storages) {
  std::vector<GraphDoubt> doubts;
  if (!phases.overruled.empty()) {
    const NodeId first = phases.overruled.front();
    doubts.push_back({"phase-overruled", first,
                      count_text(phases.overruled.size(), "node") + (phases.overruled.size() == 1 ? " has" : " have") +
                          " the phase mark `backward`, but forward outputs depend on " +
                          (phases.overruled.size() == 1 ? "it" : "them") + ". fxopt treats " +
                          (phases.overruled.size() == 1 ? "it" : "them") + " as forward. The first is " +
                          named(graph, first) + ". Autograd inside forward can leave such marks"});
  }
  find_drawn_twice(graph, phases, storages, doubts);
  find_region_inputs(graph, doubts);
  return doubts;
}

}  // namespace fxopt
