#include "ir/step/repeat.h"

#include <algorithm>
#include <limits>
#include <span>

#include "ir/graph/module.h"
#include "ir/values/values.h"

namespace fxopt {

RepeatRules::RepeatRules(const Graph& graph, const PhaseMap& phases, const StorageMap& storages)
    : graph_(&graph), storages_(&storages) {
  find_returned(graph, phases);
  if (is_joint(graph)) find_forward_writes(graph, phases);
}

void RepeatRules::find_returned(const Graph& graph, const PhaseMap& phases) {
  if (!graph.output().is_valid()) return;
  graph.for_each_input(graph.output(), [&](NodeId leaf) {
    for_each_buffer(storages_->buffers(leaf), [&](BufferId buffer) {
      ++returned_[storages_->alias_class(buffer)];
      if (phases.is_backward(leaf)) returned_by_backward_[storages_->alias_class(buffer)] = true;
    });
  });
}

void RepeatRules::find_forward_writes(const Graph& graph, const PhaseMap& phases) {
  const auto note = [this](std::span<const BufferId> buffers, uint32_t place) {
    for_each_buffer(buffers, [&](BufferId buffer) { forward_writes_[storages_->alias_class(buffer)] = place; });
  };
  for (const NodeId node : graph.nodes()) {
    if (!phases.is_backward(node)) note(storages_->writes(node), graph.position(node) + 1);
  }
  for (const NodeId input : inputs_written_by_runtime(graph)) {
    note(storages_->buffers(input), std::numeric_limits<uint32_t>::max());
  }
}

TagRule RepeatRules::obstacle(NodeId node, NodeId consumer) const {
  if (storages_->input_bytes_change(node, node, consumer)) return TagRule::kWritten;
  if (storages_->input_metadata_changes(node, node, consumer)) return TagRule::kWritten;
  const auto is_written_by_forward = [&](BufferId buffer) {
    return forward_writes_.get(storages_->alias_class(buffer)) > graph_->position(node) + 1;
  };
  if (storages_->reads_data(node) && any_buffer(storages_->reads(node), is_written_by_forward))
    return TagRule::kWritten;
  if (is_written_later(node)) return TagRule::kWritten;
  for (const BufferId buffer : storages_->buffers(node)) {
    if (!buffer.is_valid()) continue;
    const BufferId memory = storages_->alias_class(buffer);
    if (returned_by_backward_.get(memory) && returned_.get(memory) > 1) return TagRule::kReturned;
  }
  return TagRule::kNone;
}

bool RepeatRules::is_written_later(NodeId node) const {
  return any_buffer(storages_->buffers(node), [&](BufferId buffer) { return storages_->written_after(buffer, node); });
}

NodeId find_written_by_runtime(const Graph& graph, const StorageMap& storages, std::span<const NodeId> nodes) {
  IdMap<BufferId, bool> is_written(storages.num_buffers(), false);
  const auto note = [&](NodeId input) {
    for_each_buffer(storages.buffers(input), [&](BufferId buffer) { is_written[storages.alias_class(buffer)] = true; });
  };
  const auto is_noted = [&](NodeId input) {
    return any_buffer(storages.buffers(input),
                      [&](BufferId buffer) { return is_written[storages.alias_class(buffer)]; });
  };
  for (const NodeId input : inputs_written_by_runtime(graph)) note(input);
  // The file may record that inputs share memory even if it records no storages.
  const std::vector<NodeId> inputs = placeholders_of(graph);
  for (const NodeId input : inputs) {
    const InputSpec* spec = recorded_input(graph, input);
    if (spec == nullptr || !spec->alias_of_input.has_value()) continue;
    const int64_t other = *spec->alias_of_input;
    if (other < 0 || other >= static_cast<int64_t>(inputs.size())) continue;
    const NodeId same = inputs[static_cast<size_t>(other)];
    if (is_noted(same) || is_noted(input)) note(input), note(same);
  }
  const auto found = std::ranges::find_if(nodes, [&](NodeId node) { return node.is_valid() && is_noted(node); });
  return found == nodes.end() ? NodeId() : *found;
}

}  // namespace fxopt
