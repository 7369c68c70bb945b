#include "passes/collective/compute_cap.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "core/check.h"
#include "ir/alias/collective_table.h"
#include "ir/alias/sizes.h"

namespace fxopt {
namespace {

constexpr std::ptrdiff_t kMostWaiting = 64;  // reduce-scatters whose waits are retried
constexpr size_t kMostNeeded = 64;           // nodes placed together with a reduce-scatter

class Scheduler {
 public:
  Scheduler(const Graph& graph, Facts& facts, const ComputeCapOptions& options, const SymbolValues& values)
      : graph_(graph), facts_(facts), options_(options) {
    for (const Collective& one : find_collectives(graph, values)) {
      if (one.kind != CollectiveKind::kReduceScatter) continue;
      scatters_.push_back(one);
      scatter_of_[one.start] = static_cast<uint32_t>(scatters_.size());
    }
    if (options.max_live.value > 0) count_readers(values);
  }

  std::vector<NodeId> run() {
    for (const NodeId node : graph_.nodes()) {
      if (is_placed_[node]) continue;
      if (is_compute(node)) {
        if (phases_.is_backward(node) != is_backward_) in_a_row_ = 0;
        is_backward_ = phases_.is_backward(node);
        const bool is_full = options_.max_consecutive > 0 && in_a_row_ >= options_.max_consecutive;
        if (is_full || is_too_large(node)) issue_ready(node);
        if (is_too_large(node)) wait_for_earlier();
      }
      place(node);
    }
    return std::move(order_);
  }

  int64_t num_moved() const { return moved_; }
  int64_t longest() const { return longest_; }
  int64_t num_long() const { return num_long_; }
  NodeId first_long() const { return first_long_; }

 private:
  bool is_compute(NodeId node) const {
    if (!graph_[node].is_call()) return false;
    const ComputeClass kind = graph_.op(node).compute;
    return kind == ComputeClass::kContraction || kind == ComputeClass::kConvolution || kind == ComputeClass::kAttention;
  }
  // Whether the node may be placed early to prepare the input of a reduce-scatter.
  bool is_light(NodeId node) const {
    if (!graph_[node].is_call() || !graph_.op(node).is_pure()) return false;
    const ComputeClass kind = graph_.op(node).compute;
    return kind == ComputeClass::kView || kind == ComputeClass::kDataMovement || kind == ComputeClass::kPointwise ||
           graph_.op(node).view != ViewKind::kNone;
  }

  void place(NodeId node) {
    is_placed_[node] = true;
    order_.push_back(node);
    if (const uint32_t scatter = scatter_of_.get(node); scatter != 0) {
      in_a_row_ = 0;
      unwaited_.push_back(scatter - 1);
    } else if (is_compute(node)) {
      ++in_a_row_;
      longest_ = std::max(longest_, in_a_row_);
      if (options_.max_consecutive > 0 && in_a_row_ - 1 == options_.max_consecutive) {
        ++num_long_;
        if (!first_long_.is_valid()) first_long_ = node;
      }
    }
    if (options_.max_live.value > 0) follow_memory(node);
  }

  // -- early issue

  // Issues the ready reduce-scatters in their order, after the waits for earlier reduce-scatters.
  void issue_ready(NodeId next) {
    while (next_ < scatters_.size() && is_placed_[scatters_[next_].start]) ++next_;
    std::vector<std::vector<NodeId>> ready;
    ++round_;
    for (size_t at = next_; at < scatters_.size(); ++at) {
      if (is_placed_[scatters_[at].start]) continue;
      if (phases_.is_backward(scatters_[at].start) != phases_.is_backward(next)) break;
      std::vector<NodeId> needed;
      if (!collect(scatters_[at].start, needed)) break;
      for (const NodeId node : needed) taken_in_[node] = round_;
      ready.push_back(std::move(needed));
    }
    if (ready.empty()) return;
    wait_for_earlier();
    for (const std::vector<NodeId>& needed : ready) {
      for (const NodeId node : needed) {
        if (is_placed_[node]) continue;  // already placed together with a wait
        place(node);
        ++moved_;
      }
    }
  }

  // Collects the nodes that must be placed together with `node`, followed by `node`. Returns false
  // if one of these nodes must not be placed early.
  bool collect(NodeId node, std::vector<NodeId>& needed) {
    if (needed.size() >= kMostNeeded) return false;
    for (const Dependence& dependence : dependences_.of(node)) {
      const NodeId on = dependence.on;
      if (is_placed_[on] || taken_in_[on] == round_ || std::ranges::count(needed, on) > 0) continue;
      if (!is_light(on) || !collect(on, needed)) return false;
    }
    needed.push_back(node);
    return true;
  }

  void wait_for_earlier() {
    std::vector<size_t> rest;
    for (const size_t scatter : unwaited_) {
      bool is_done = true;
      for (const NodeId wait : scatters_[scatter].waits) {
        if (is_placed_[wait]) continue;
        std::vector<NodeId> needed;  // a coalesced call also needs the getitem that is waited for
        ++round_;
        const bool can = collect(wait, needed);
        for (const NodeId node : can ? needed : std::vector<NodeId>()) {
          place(node);
          ++moved_;
        }
        is_done = is_done && can;
      }
      if (!is_done) rest.push_back(scatter);
    }
    if (rest.size() > static_cast<size_t>(kMostWaiting))
      rest.erase(rest.begin(), rest.end() - kMostWaiting);  // the waits of the oldest keep their places
    unwaited_ = std::move(rest);
  }

  // -- live bytes

  void count_readers(const SymbolValues& values) {
    for (size_t i = 0; i < storages_.num_buffers(); ++i) {
      const BufferId id(i);
      const Buffer& buffer = storages_.buffer(id);
      if (!buffer.value.is_valid()) continue;  // an input without a recorded value
      const Value& value = graph_.pool().value(buffer.value);
      if (value.kind != ValueKind::kTensor) continue;
      bytes_[id] = storage_bytes(graph_.module(), graph_.pool().tensor(value), values).value_or(0);
      // The caller keeps this storage live to the end.
      if (buffer.source != BufferSource::kNode || storages_.is_returned(id)) ++readers_[id];
    }
    for (const NodeId node : graph_.nodes()) {
      for (const BufferId id : touched(node)) ++readers_[id];
    }
  }
  // The buffers of the node's result and inputs, and for a wait also of the collective's inputs.
  std::vector<BufferId> touched(NodeId node) const {
    std::vector<BufferId> found;
    const auto add = [&](NodeId other) {
      for (const BufferId id : storages_.buffers(other)) {
        if (id.is_valid()) found.push_back(id);
      }
    };
    add(node);
    graph_.for_each_input(node, [&](NodeId input) {
      add(input);
      if (graph_[input].is_call() && graph_.op(input).has(Effect::kCollective)) graph_.for_each_input(input, add);
    });
    return found;
  }
  bool is_too_large(NodeId node) const {
    if (options_.max_live.value == 0) return false;
    int64_t bytes = live_;
    for (const BufferId id : storages_.buffers(node)) bytes += id.is_valid() && !is_live_[id] ? bytes_[id] : 0;
    return bytes > options_.max_live.value;
  }
  void follow_memory(NodeId node) {
    for (const BufferId id : touched(node)) {
      if (!is_live_[id]) live_ += bytes_[id];
      is_live_[id] = true;
      if (--readers_[id] == 0) live_ -= bytes_[id];
    }
  }

  const Graph& graph_;
  Facts& facts_;
  const ComputeCapOptions& options_;
  const DependenceMap& dependences_ = facts_.dependences();
  const StorageMap& storages_ = facts_.storages();
  const PhaseMap& phases_ = facts_.phases();
  std::vector<Collective> scatters_;
  IdMap<NodeId, bool> is_placed_{graph_.num_ids(), false};
  IdMap<NodeId, uint32_t> taken_in_{graph_.num_ids(), 0};  // the round that will place the node
  uint32_t round_ = 0;
  IdMap<NodeId, uint32_t> scatter_of_{graph_.num_ids(), 0};  // 1 + the node's index in `scatters_`
  std::vector<NodeId> order_;
  std::vector<size_t> unwaited_;  // indices of issued reduce-scatters without a wait so far
  size_t next_ = 0;               // all reduce-scatters before this index are issued
  bool is_backward_ = false;      // whether the last computation is in backward
  int64_t in_a_row_ = 0, longest_ = 0, num_long_ = 0, moved_ = 0;
  NodeId first_long_;
  IdMap<BufferId, int64_t> bytes_;
  IdMap<BufferId, uint32_t> readers_;
  IdMap<BufferId, bool> is_live_;
  int64_t live_ = 0;
};

}  // namespace

Status ComputeCapOptions::check() const {
  if (max_consecutive >= 0) return ok_status();
  Error error{
      ErrorCode::kBadOptionValue, "'max-consecutive' of 'compute-cap' must be 0 or more", "0 means no limit", {}};
  error.where.field = "max-consecutive";
  return error;
}

Result<PassResult> compute_cap(Graph& graph, const ComputeCapOptions& options, PassContext& context) {
  PassResult result;
  Facts& facts = context.facts.of(graph);
  Scheduler scheduler(graph, facts, options, symbol_values(graph.module(), context.measure.memory.symbols));
  const std::vector<NodeId> order = scheduler.run();
  FXOPT_CHECK(!facts.dependences().violation(order).has_value(), "the new order breaks a dependence");
  result.note("longest", scheduler.longest());
  if (scheduler.num_long() > 0) {
    result.remark(graph, scheduler.first_long(), "long-runs",
                  std::to_string(scheduler.num_long()) +
                      (scheduler.num_long() == 1 ? " sequence of computations is" : " sequences of computations are") +
                      " longer than " + std::to_string(options.max_consecutive) + " (the longest has " +
                      std::to_string(scheduler.longest()) +
                      "), because no reduce-scatter could be issued between these computations");
  }
  if (!std::equal(order.begin(), order.end(), graph.nodes().begin())) {
    graph.set_schedule(order);
    result.count("moved", std::max<int64_t>(scheduler.num_moved(), 1));
  }
  return result;
}

}  // namespace fxopt
