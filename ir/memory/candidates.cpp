#include "ir/memory/candidates.h"

#include <algorithm>
#include <utility>

#include "core/saturate.h"
#include "ir/alias/effect_map.h"
#include "ir/step/origins.h"
#include "ir/step/repeat.h"
#include "ir/step/tag_rules.h"

namespace fxopt {
namespace {

class Finder {
 public:
  Finder(const Graph& graph, const StorageMap& storages, const PhaseMap& phases, const MemoryReport& memory,
         StringId device, uint32_t place, CostTable& costs)
      : graph_(graph),
        storages_(storages),
        phases_(phases),
        memory_(memory),
        device_(device),
        place_(place),
        costs_(costs),
        effects_(graph),
        repeats_(graph, phases, storages) {}

  std::vector<RecomputeCandidate> run() {
    for (const NodeId node : graph_.nodes()) schedule_.push_back(node);
    for (const NodeId node : schedule_) {
      if (graph_.position(node) >= place_) break;
      if (graph_[node].is_call() && !phases_.is_backward(node)) consider(node);
    }
    std::ranges::stable_sort(found_, is_cheaper);
    return std::move(found_);
  }

 private:
  const Lifetime& lifetime(BufferId id) const { return memory_.lifetimes[id.index()]; }

  bool is_live(BufferId id) const { return lifetime(id).first <= place_ && place_ <= lifetime(id).last; }

  // Whether the storage is live at `place_` only for backward.
  bool waits(BufferId id) const {
    const Lifetime& life = lifetime(id);
    return life.kind == MemoryClass::kSavedValue && storages_.buffer(id).device == device_ && is_live(id) &&
           life.kept < place_ && life.read_in_backward != Lifetime::kNever && life.read_in_backward > place_ &&
           !storages_.is_returned(id);
  }

  void consider(NodeId node) {
    if (graph_.op(node).has(Effect::kCollective) || is_recomputed(graph_, node)) return;
    RecomputeCandidate candidate{node, 0, 0, {}};
    uint32_t reader = Lifetime::kNever;  // first reader in backward of a freed storage
    for (const BufferId id : storages_.buffers(node)) {
      if (!id.is_valid() || storages_.buffer(id).producer != node || is_counted_[id] || !waits(id)) continue;
      is_counted_[id] = true;
      candidate.freed = saturating_add(candidate.freed, lifetime(id).bytes);
      reader = std::min(reader, lifetime(id).read_in_backward);
    }
    if (candidate.freed == 0 || !can_stand_before(node, schedule_[reader])) return;
    for (const BufferId id : storages_.reads(node)) {
      if (storages_.buffer(id).device != device_ || is_live(id)) continue;
      if (!lifetime(id).known) return;
      candidate.kept = saturating_add(candidate.kept, lifetime(id).bytes);
    }
    if (candidate.gain() <= 0) return;
    candidate.work = costs_.of(node);
    found_.push_back(candidate);
  }

  // Whether a copy right before `reader` would compute the same value as the node.
  bool can_stand_before(NodeId node, NodeId reader) {
    return why_unrepeatable(graph_, node, effects_).empty() && repeats_.obstacle(node, reader) == TagRule::kNone;
  }

  static bool is_cheaper(const RecomputeCandidate& a, const RecomputeCandidate& b) {
    if ((a.work.unknown > 0) != (b.work.unknown > 0)) return b.work.unknown > 0;
    const auto rate = [](const RecomputeCandidate& each) {
      return each.work.seconds / static_cast<double>(each.gain());
    };
    if (rate(a) != rate(b)) return rate(a) < rate(b);
    const auto is_less = [&](int64_t of_a, int64_t of_b) {
      return WideSum{of_a} * b.gain() < WideSum{of_b} * a.gain();
    };
    if (is_less(a.work.flops, b.work.flops)) return true;
    if (is_less(b.work.flops, a.work.flops)) return false;
    return is_less(a.work.bytes, b.work.bytes);
  }

  const Graph& graph_;
  const StorageMap& storages_;
  const PhaseMap& phases_;
  const MemoryReport& memory_;
  StringId device_;
  uint32_t place_;
  CostTable& costs_;
  EffectMap effects_;
  RepeatRules repeats_;
  std::vector<NodeId> schedule_;
  IdMap<BufferId, bool> is_counted_;
  std::vector<RecomputeCandidate> found_;
};

}  // namespace

std::vector<RecomputeCandidate> recompute_candidates(const Graph& graph, const StorageMap& storages,
                                                     const PhaseMap& phases, const MemoryReport& memory,
                                                     StringId device, uint32_t place, CostTable& costs) {
  return Finder(graph, storages, phases, memory, device, place, costs).run();
}

}  // namespace fxopt
