#include "cli/run_memory.h"

#include <unordered_map>
#include <utility>

#include "ir/alias/storages.h"
#include "ir/memory/memory.h"
#include "ir/memory/replay.h"
#include "ir/memory/trace.h"

namespace fxopt {
namespace {

class Predicted final : public ReplayListener {
 public:
  struct Event {
    uint32_t place;
    AllocatorAction action;
    int64_t bytes;
  };
  std::vector<Event> events;

 private:
  void on_begin(const std::vector<uint64_t>&) override { events.clear(); }
  void on_event(uint32_t place, uint32_t, const AllocatorEvent& event) override {
    events.push_back({place, event.action, event.bytes});
  }
  void on_end(const CachingAllocator&) override {}
};

std::string_view action_text(AllocatorAction action) {
  constexpr std::string_view kTexts[] = {"allocated", "freed",    "freed",    "reserved",
                                         "released",  "reserved", "released", "not available"};
  return kTexts[static_cast<size_t>(action)];
}

std::string event_text(AllocatorAction action, int64_t bytes) {
  return std::to_string(bytes) + " bytes " + std::string(action_text(action));
}

// Returns the workspaces of the steps, by the node that each step runs.
std::vector<int64_t> by_node_id(const Graph& graph, const FxPlan& plan, const std::vector<int64_t>& workspaces) {
  std::unordered_map<uint64_t, int64_t> by_uid;
  for (uint32_t i = 0; i < plan.num_steps; ++i) {
    if (workspaces[i] > 0 && plan.steps[i].node != FX_NONE) by_uid[plan.nodes[plan.steps[i].node].uid] = workspaces[i];
  }
  std::vector<int64_t> found;
  for (const NodeId node : graph.nodes()) {
    const auto bytes = by_uid.find(graph[node].uid);
    if (bytes == by_uid.end()) continue;
    if (found.size() <= node.index()) found.resize(node.index() + 1);
    found[node.index()] = bytes->second;
  }
  return found;
}

}  // namespace

std::optional<AllocatorComparison> compare_allocator(const Module& module, const FxPlan& plan,
                                                     const SymbolValues& symbols,
                                                     const std::vector<int64_t>& workspaces,
                                                     const AllocatorConfig& config,
                                                     const std::vector<AllocatorEvent>& events, size_t inputs) {
  if (module.num_graphs() != 1) return std::nullopt;
  const Graph& graph = module.main();
  const StorageMap storages(graph);
  MemoryOptions memory_options;
  memory_options.symbols = symbols;
  const MemoryReport memory = analyze_memory(graph, storages, memory_options);
  if (memory.devices.size() != 1) return std::nullopt;
  const std::vector<int64_t> by_node = by_node_id(graph, plan, workspaces);
  TraceOptions trace_options;
  trace_options.workspaces = by_node;
  const MemoryTrace trace =
      trace_memory(graph, storages, memory, memory.devices.front().device, memory_options, trace_options);
  Predicted predicted;
  ReplayOptions options;
  options.config = config;
  options.listener = &predicted;
  const AllocatorReplay replay = replay_allocator(trace, options);
  AllocatorComparison found;
  found.predicted_allocated = replay.allocated.bytes;
  found.predicted_reserved = replay.reserved.bytes;
  size_t first = 0;
  for (size_t seen = 0; first < events.size() && seen < inputs; ++first)
    seen += events[first].action == AllocatorAction::kAllocate ? 1 : 0;
  for (size_t i = 0; i < predicted.events.size() || first + i < events.size(); ++i) {
    const bool is_there = first + i < events.size(), is_predicted = i < predicted.events.size();
    const Predicted::Event wanted = is_predicted ? predicted.events[i] : Predicted::Event{};
    if (is_there && is_predicted && events[first + i].action == wanted.action &&
        events[first + i].bytes == wanted.bytes) {
      ++found.events;
      continue;
    }
    const uint32_t place = is_predicted ? wanted.place : static_cast<uint32_t>(trace.schedule.size() - 1);
    found.first_difference =
        "%" + std::string(graph.name_of(trace.schedule[place])) + ": " +
        (is_there ? event_text(events[first + i].action, events[first + i].bytes) : "no further event") + ", not " +
        (is_predicted ? event_text(wanted.action, wanted.bytes) : "no further event") + " as predicted";
    break;
  }
  return found;
}

}  // namespace fxopt
