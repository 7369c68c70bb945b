#include "ir/memory/trace.h"

#include <algorithm>
#include <utility>

#include "core/saturate.h"
#include "ir/alias/sizes.h"
#include "ir/device/hidden_memory.h"

namespace fxopt {
namespace {

class Tracer {
 public:
  Tracer(const Graph& graph, const StorageMap& storages, const MemoryReport& memory, StringId device,
         const MemoryOptions& lifetimes, const TraceOptions& options)
      : graph_(graph),
        storages_(storages),
        memory_(memory),
        options_(options),
        values_(symbol_values(graph.module(), lifetimes.symbols)),
        block_of_(storages.num_buffers(), kNoBlock) {
    trace_.device = device;
    trace_.is_steady = options.steady.has_value();
    if (options.profile != nullptr) hidden_.emplace(graph, *options.profile, values_);
  }

  MemoryTrace run() {
    for (const NodeId node : graph_.nodes()) trace_.schedule.push_back(node);
    sort_lifetimes();
    add_kept();
    for (uint32_t place = 0; place < trace_.schedule.size(); ++place) step(place);
    trace_.begins.push_back(static_cast<uint32_t>(trace_.events.size()));
    return std::move(trace_);
  }

 private:
  static constexpr uint32_t kNoBlock = UINT32_MAX;
  static constexpr uint32_t kNowhere = UINT32_MAX;

  uint32_t end() const { return trace_.schedule.empty() ? 0 : static_cast<uint32_t>(trace_.schedule.size() - 1); }

  uint32_t add(TraceBlock block) {
    trace_.blocks.push_back(block);
    return static_cast<uint32_t>(trace_.blocks.size() - 1);
  }

  // Makes a block for each storage. Lists the storages that begin, are released and end at each
  // place, by buffer.
  void sort_lifetimes() {
    starting_.resize(trace_.schedule.size());
    ending_.resize(trace_.schedule.size());
    memory_.for_each_stay([this](const Lifetime& life) {
      const Buffer& buffer = storages_.buffer(life.buffer);
      if (buffer.device != trace_.device || life.bytes == 0) return;
      const bool is_input = buffer.source != BufferSource::kNode;
      const BlockSource source = is_input ? BlockSource::kInput : BlockSource::kStorage;
      const uint32_t block = add({source, life.kind, life.bytes, buffer.producer, life.first, life.last, life.buffer});
      if (block_of_[life.buffer.index()] == kNoBlock) block_of_[life.buffer.index()] = block;
      (is_input && life.first == 0 ? trace_.initial : starting_[life.first]).push_back(block);
      ending_[life.last].push_back(block);
      const bool is_released =
          options_.comm == CommLifetime::kRecordStream && life.released < life.last && life.last < end();
      release_at_.push_back(is_released ? life.released : kNowhere);
      is_freed_.push_back(false);
      if (is_released) ending_[life.released].push_back(block);
    });
  }

  void add_kept() {
    if (!options_.steady.has_value()) return;
    const bool has_state = std::ranges::any_of(
        memory_.lifetimes, [](const Lifetime& life) { return life.kind == MemoryClass::kOptimizerState; });
    for (const BufferId id : memory_.trained) {
      if (!has_state) add_optimizer_state(id);
    }
    if (options_.steady->keep_gradients) add_gradients();
  }

  // Adds one kept gradient for each gradient storage, but at most one for each parameter. For tied
  // weights, the caller keeps only the sum of the gradients.
  void add_gradients() {
    std::vector<bool> is_added(storages_.num_buffers(), false);
    for (const auto& [gradient, parameter] : memory_.gradients) {
      const uint32_t block = block_of_[gradient.index()];
      if (block == kNoBlock || trace_.blocks[block].source != BlockSource::kStorage || is_added[gradient.index()])
        continue;
      is_added[gradient.index()] = true;
      if (parameter.is_valid()) {
        if (is_added[parameter.index()]) continue;
        is_added[parameter.index()] = true;
      }
      add_kept(block, MemoryClass::kGradient, "gradient");
    }
  }

  void add_optimizer_state(BufferId parameter) {
    const uint32_t block = block_of_[parameter.index()];
    if (block == kNoBlock) return;
    if (options_.steady->optimizer == OptimizerState::kMomentum) {
      add_kept(block, MemoryClass::kOptimizerState, "momentum_buffer");
    }
    if (options_.steady->optimizer == OptimizerState::kAdam) {
      add_kept(block, MemoryClass::kOptimizerState, "exp_avg");
      add_kept(block, MemoryClass::kOptimizerState, "exp_avg_sq");
    }
  }

  // Adds a block with the size of the block `like`. The block is live at every place.
  void add_kept(uint32_t like, MemoryClass kind, std::string_view label) {
    const TraceBlock model = trace_.blocks[like];
    trace_.initial.push_back(
        add({BlockSource::kKept, kind, model.bytes, model.node, 0, end(), {}, label, Evidence::kSource, like}));
  }

  void step(uint32_t place) {
    const NodeId node = trace_.schedule[place];
    trace_.begins.push_back(static_cast<uint32_t>(trace_.events.size()));
    std::vector<uint32_t> taken;
    std::vector<HiddenBlock> blocks;
    if (hidden_.has_value() && runs_here(node)) {
      blocks = hidden_->of(node);
      if (is_unknown(node, blocks)) trace_.unknown_hidden.push_back(node);
    }
    take_hidden(place, blocks, HiddenKind::kTemporary, taken);
    for (const uint32_t block : starting_[place]) {
      trace_.events.push_back({block, TraceAction::kTake});
      block_of_[trace_.blocks[block].buffer.index()] = block;  // the present stay of a resized storage
    }
    take_hidden(place, blocks, HiddenKind::kWorkspace, taken);
    take_own(place, taken);
    take_hidden(place, blocks, HiddenKind::kPersistent, taken);
    for (size_t i = taken.size(); i-- > 0;) trace_.events.push_back({taken[i], TraceAction::kFree});
    if (place != end()) free_ended(node, place);
  }

  // Whether the call may use more hidden memory than `blocks` shows. This is true if a block has no
  // known size, or if the op has no description.
  bool is_unknown(NodeId node, const std::vector<HiddenBlock>& blocks) const {
    if (!graph_[node].is_call()) return false;
    if (blocks.empty() && !is_described(graph_.op(node))) return true;
    return std::ranges::any_of(blocks, [](const HiddenBlock& hidden) { return !hidden.bytes.has_value(); });
  }

  // Whether the call's first output is on the trace's device. If the call has no outputs, the first
  // tensor operand decides.
  bool runs_here(NodeId node) const {
    for (const BufferId id : storages_.buffers(node)) {
      if (id.is_valid()) return storages_.buffer(id).device == trace_.device;
    }
    const std::span<const BufferId> reads = storages_.reads(node);
    return !reads.empty() && storages_.buffer(reads.front()).device == trace_.device;
  }

  void take_hidden(uint32_t place, const std::vector<HiddenBlock>& blocks, HiddenKind kind,
                   std::vector<uint32_t>& taken) {
    const NodeId node = trace_.schedule[place];
    for (const HiddenBlock& hidden : blocks) {
      if (hidden.row->kind != kind || !hidden.bytes.has_value()) continue;
      TraceBlock block{source_of(kind), MemoryClass::kWorkspace, *hidden.bytes, node, place, place};
      block.label = hidden.row->name;
      block.evidence = hidden.row->evidence;
      if (kind == HiddenKind::kPersistent) {
        if (!is_new(hidden.row->name)) continue;
        block.last = end();
      }
      const uint32_t added = add(block);
      if (kind == HiddenKind::kPersistent && options_.steady.has_value()) {
        trace_.blocks[added].first = 0;  // allocated in an earlier step
        trace_.initial.push_back(added);
      }
      trace_.events.push_back({added, TraceAction::kTake});
      if (kind != HiddenKind::kPersistent) taken.push_back(added);
    }
  }

  // Allocates the workspace of the executor's own kernel.
  void take_own(uint32_t place, std::vector<uint32_t>& taken) {
    const NodeId node = trace_.schedule[place];
    const int64_t bytes = node.index() < options_.workspaces.size() ? options_.workspaces[node.index()] : 0;
    if (bytes <= 0) return;
    taken.push_back(add({BlockSource::kWorkspace, MemoryClass::kWorkspace, bytes, node, place, place, {}, "kernel"}));
    trace_.events.push_back({taken.back(), TraceAction::kTake});
  }

  static BlockSource source_of(HiddenKind kind) {
    return kind == HiddenKind::kTemporary    ? BlockSource::kTemporary
           : kind == HiddenKind::kPersistent ? BlockSource::kPersistent
                                             : BlockSource::kWorkspace;
  }

  bool is_new(std::string_view persistent) {
    if (std::ranges::find(persistent_, persistent) != persistent_.end()) return false;
    persistent_.push_back(persistent);
    return true;
  }

  void free_ended(NodeId node, uint32_t place) {
    if (ending_[place].empty()) return;
    graph_.for_each_input(node, [&](NodeId input) {
      for_each_buffer(storages_.buffers(input), [&](BufferId id) { free_block(block_of_[id.index()], place); });
    });
    for (const uint32_t block : ending_[place]) free_block(block, place);
  }

  void free_block(uint32_t block, uint32_t place) {
    if (block == kNoBlock) return;
    if (release_at_[block] == place) {
      trace_.events.push_back({block, TraceAction::kRelease});
      release_at_[block] = kNowhere;
    }
    if (trace_.blocks[block].last != place) return;
    if (is_freed_[block]) return;
    trace_.events.push_back({block, TraceAction::kFree});
    is_freed_[block] = true;
  }

  const Graph& graph_;
  const StorageMap& storages_;
  const MemoryReport& memory_;
  const TraceOptions& options_;
  SymbolValues values_;
  std::optional<HiddenMemory> hidden_;
  MemoryTrace trace_;
  std::vector<uint32_t> block_of_;    // by buffer; kNoBlock: on another device, or empty
  std::vector<uint32_t> release_at_;  // by block of a storage: a place, or kNowhere
  std::vector<bool> is_freed_;        // by block of a storage
  std::vector<std::vector<uint32_t>> starting_, ending_;
  std::vector<std::string_view> persistent_;
};

// At each place, calls change(block, 1) for allocations, then at_fullest(), then change(block, -1)
// for frees.
template <class Change, class AtFullest>
void walk(const MemoryTrace& trace, const Change& change, const AtFullest& at_fullest) {
  std::vector<bool> is_there(trace.blocks.size(), false);
  for (const uint32_t block : trace.initial) {
    is_there[block] = true;
    change(trace.blocks[block], 1);
  }
  for (uint32_t place = 0; place < trace.schedule.size(); ++place) {
    const std::span<const TraceEvent> events = trace.events_at(place);
    size_t next = 0;
    for (; next < events.size() && events[next].action == TraceAction::kTake; ++next) {
      if (!is_there[events[next].block]) change(trace.blocks[events[next].block], 1);
    }
    at_fullest();
    for (; next < events.size(); ++next) {
      if (events[next].action == TraceAction::kFree) change(trace.blocks[events[next].block], -1);
    }
  }
}

}  // namespace

MemoryTrace trace_memory(const Graph& graph, const StorageMap& storages, const MemoryReport& memory, StringId device,
                         const MemoryOptions& lifetimes, const TraceOptions& options) {
  return Tracer(graph, storages, memory, device, lifetimes, options).run();
}

MemoryTimeline timeline_of(const MemoryTrace& trace) {
  MemoryTimeline timeline;
  WideSum ideal = 0, requested = 0;
  const auto change = [&](const TraceBlock& block, int sign) {
    requested += WideSum{sign} * block.bytes;
    if (!block.is_hidden()) ideal += WideSum{sign} * block.bytes;
  };
  walk(trace, change, [&] {
    timeline.ideal.push_back(saturate(ideal));
    timeline.requested.push_back(saturate(requested));
  });
  return timeline;
}

std::optional<ArenaPlan> plan_arena(const MemoryTrace& trace, int64_t effort) {
  std::vector<ArenaItem> items;
  items.reserve(trace.blocks.size());
  for (const TraceBlock& block : trace.blocks) items.push_back({block.first, block.last, block.bytes});
  ArenaOptions options;
  options.effort = effort;
  return plan_arena(items, options);
}

std::array<std::vector<int64_t>, kNumMemoryClasses> class_timelines(const MemoryTrace& trace) {
  std::array<std::vector<int64_t>, kNumMemoryClasses> timelines;
  std::array<WideSum, kNumMemoryClasses> sums{};
  std::array<bool, kNumMemoryClasses> has_blocks{};
  for (const TraceBlock& block : trace.blocks) has_blocks[static_cast<size_t>(block.kind)] = true;
  const auto change = [&sums](const TraceBlock& block, int sign) {
    sums[static_cast<size_t>(block.kind)] += WideSum{sign} * block.bytes;
  };
  walk(trace, change, [&] {
    for (size_t kind = 0; kind < kNumMemoryClasses; ++kind) {
      if (has_blocks[kind]) timelines[kind].push_back(saturate(sums[kind]));
    }
  });
  return timelines;
}

std::vector<uint32_t> live_blocks(const MemoryTrace& trace, uint32_t place) {
  std::vector<uint32_t> live;
  for (uint32_t i = 0; i < trace.blocks.size(); ++i) {
    if (trace.blocks[i].first <= place && place <= trace.blocks[i].last) live.push_back(i);
  }
  std::ranges::sort(live, [&trace](uint32_t a, uint32_t b) {
    const TraceBlock& left = trace.blocks[a];
    const TraceBlock& right = trace.blocks[b];
    if (left.bytes != right.bytes) return left.bytes > right.bytes;
    return left.first != right.first ? left.first < right.first : a < b;
  });
  return live;
}

}  // namespace fxopt
