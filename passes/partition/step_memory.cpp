#include "passes/partition/step_memory.h"

#include <algorithm>
#include <limits>

#include "core/saturate.h"
#include "ir/values/values.h"
#include "passes/pass/nodes.h"

namespace fxopt {
namespace {

constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();

}  // namespace

StepMemory::StepMemory(const Graph& graph, const PhaseMap& phases, const StorageMap& storages,
                       const std::function<int64_t(BufferId)>& bytes_of)
    : graph_(graph), phases_(phases), storages_(storages), bytes_(storages.num_buffers(), 0) {
  for (size_t i = 0; i < storages.num_buffers(); ++i) {
    const BufferId id(i);
    if (!storages.is_external(id)) bytes_[id] = bytes_of(id);
  }
  for (const bool is_backward : {false, true}) {
    first_of_backward_ = static_cast<uint32_t>(order_.size());
    for (const NodeId node : graph.nodes()) {
      if (graph[node].is_call() && phases.is_backward(node) == is_backward) order_.push_back(node);
    }
  }
  for (const NodeId leaf : output_leaves(graph)) {
    if (leaf.is_valid()) returned_.push_back(leaf);
  }
}

StepMemory::LastUses StepMemory::place_copies(const IdMap<NodeId, bool>& is_again, std::vector<Copy>& copies) const {
  IdMap<NodeId, uint32_t> copied(graph_.num_ids(), kNever);  // place of the copy
  LastUses last{IdMap<BufferId, uint32_t>(storages_.num_buffers(), kNever),
                IdMap<BufferId, uint32_t>(storages_.num_buffers(), kNever)};
  const auto read = [&](NodeId value, uint32_t place) {
    for (const BufferId id : storages_.buffers(value)) {
      if (!id.is_valid()) continue;
      (copied.get(storages_.buffer(id).producer) == kNever ? last.of_value : last.of_copy)[id] = place;
    }
  };
  std::vector<NodeId> pending, made;
  for (uint32_t place = 0; place < order_.size(); ++place) {
    const NodeId consumer = order_[place];
    made.clear();
    if (place >= first_of_backward_) {
      graph_.for_each_input(consumer, [&pending](NodeId input) { pending.push_back(input); });
    }
    while (!pending.empty()) {
      const NodeId node = take_last(pending);
      if (phases_.is_backward(node) || !is_again.get(node) || copied.get(node) != kNever) continue;
      copied[node] = place;
      made.push_back(node);
      graph_.for_each_input(node, [&pending](NodeId input) { pending.push_back(input); });
    }
    for (const NodeId node : made) {
      copies.push_back({node, place, place, 0});
      graph_.for_each_input(node, [&](NodeId input) { read(input, place); });
      read(node, place);
    }
    graph_.for_each_input(consumer, [&](NodeId input) { read(input, place); });
    read(consumer, place);
  }
  if (order_.empty()) return last;
  for (const NodeId leaf : returned_) read(leaf, static_cast<uint32_t>(order_.size()) - 1);
  return last;
}

std::vector<int64_t> StepMemory::live_changes(const LastUses& last, std::vector<Copy>& copies) const {
  std::vector<int64_t> change(order_.size() + 1, 0);
  const auto live = [&](uint32_t first, uint32_t until, int64_t bytes) {
    change[first] += bytes;
    change[until + 1] -= bytes;
  };
  IdMap<NodeId, uint32_t> place_of(graph_.num_ids(), 0);
  for (uint32_t place = 0; place < order_.size(); ++place) place_of[order_[place]] = place;
  for (size_t i = 0; i < storages_.num_buffers(); ++i) {
    const BufferId id(i);
    if (last.of_value.get(id) == kNever) continue;
    live(place_of.get(storages_.buffer(id).producer), last.of_value.get(id), bytes_.get(id));
  }
  for (Copy& copy : copies) {
    for (const BufferId id : storages_.buffers(copy.node)) {
      if (!id.is_valid() || storages_.buffer(id).producer != copy.node) continue;
      copy.last = std::max(copy.last, last.of_copy.get(id));
      copy.bytes = saturating_add(copy.bytes, bytes_.get(id));
      live(copy.first, last.of_copy.get(id), bytes_.get(id));
    }
  }
  return change;
}

StepMemory::Profile StepMemory::profile(const IdMap<NodeId, bool>& is_again) const {
  Profile profile;
  const LastUses last = place_copies(is_again, profile.copies);
  if (order_.empty()) return profile;
  const std::vector<int64_t> change = live_changes(last, profile.copies);
  int64_t now = 0;
  for (uint32_t place = 0; place < order_.size(); ++place) {
    now += change[place];
    if (now <= profile.peak) continue;
    profile.peak = now;
    profile.place = place;
  }
  return profile;
}

}  // namespace fxopt
