#include "ir/alias/dependence.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/hash_table.h"
#include "ir/alias/collectives.h"
#include "ir/alias/effects.h"
#include "ir/alias/order.h"
#include "ir/graph/module.h"

namespace fxopt {
namespace {

constexpr Effect kAnyEffect = Effect::kRandom | Effect::kMutates | Effect::kCollective | Effect::kWaits |
                              Effect::kAsserts | Effect::kUnknownWrites | Effect::kChangesMode;
constexpr uint32_t kNoRead = std::numeric_limits<uint32_t>::max();

}  // namespace

// Builds the map in one walk over the schedule. Nodes read and write resources, such as the memory
// of an alias class. A reader depends on the last writer. A writer depends on the last writer and
// on all readers since then.
class DependenceMap::Builder {
 public:
  Builder(const Graph& graph, EffectMap& effects, const StorageMap& storages, DependenceMap& map)
      : graph_(graph), storages_(storages), map_(map), stamps_(graph.num_ids()) {
    effects_.reserve(graph.num_nodes());
    for (const NodeId node : graph.nodes()) {
      effects_.push_back(effects.of(node));
      all_effects_ = all_effects_ | effects_.back();
      has_events_ = has_events_ || has_events(graph, node);
    }
    changes_ = storages.metadata_changes();
    for (const StorageMap::MetadataChange& change : changes_) is_changed_[change.object] = true;
    std::ranges::stable_sort(changes_, [](const auto& a, const auto& b) { return a.place < b.place; });
  }

  void run() {
    map_.own_ = IdMap<NodeId, Slice>(graph_.num_ids());
    for (const NodeId node : graph_.nodes()) {
      node_ = node;
      const uint32_t first = static_cast<uint32_t>(map_.dependences_.size());
      visit();
      map_.own_[node] = {first, static_cast<uint32_t>(map_.dependences_.size()) - first};
      ++place_;
    }
  }

 private:
  struct Resource {
    NodeId written;            // the last writer
    uint32_t reads = kNoRead;  // head of the chain of reads since that write, in reads_
  };
  struct Read {
    NodeId node;
    uint32_t next;
  };

  bool has(Effect bits) const { return has_effect(effects_[place_], bits); }

  void follow(NodeId on, DependenceKind why) {
    if (!on.is_valid() || on == node_ || stamps_.get(on) == node_) return;
    stamps_[on] = node_;
    map_.dependences_.push_back({on, why});
  }

  void read(Resource& resource, DependenceKind why) {
    follow(resource.written, why);
    reads_.push_back({node_, resource.reads});
    resource.reads = static_cast<uint32_t>(reads_.size() - 1);
  }

  void write(Resource& resource, DependenceKind why) {
    for (uint32_t at = resource.reads; at != kNoRead; at = reads_[at].next) follow(reads_[at].node, why);
    follow(resource.written, why);
    resource = {node_, kNoRead};
  }

  void visit() {
    graph_.for_each_input(node_, [this](NodeId input) { follow(input, DependenceKind::kValue); });
    if (graph_[node_].runs()) {
      visit_storages();
      visit_metadata();
      visit_effects();
    }
    for (const ControlDep& dep : control_of(graph_, node_)) follow(dep.node, DependenceKind::kControl);
  }

  // -- memory

  Resource& storage(BufferId buffer) { return storages_now_[storages_.alias_class(buffer)]; }
  bool is_tracked(BufferId buffer) const {
    return buffer.is_valid() && (storages_.is_written(buffer) || is_waited_.get(storages_.alias_class(buffer)));
  }

  void visit_storages() {
    if (!writes_only_metadata(graph_, node_)) visit_bytes();
    if (has(Effect::kWaits)) visit_wait();
    if (has(Effect::kCollective)) {
      start_collective(storages_.buffers(node_));
      start_collective(storages_.writes(node_));
    }
  }

  void visit_bytes() {
    if (storages_.reads_data(node_)) {
      for (const BufferId buffer : storages_.reads(node_)) {
        if (is_tracked(buffer)) read(storage(buffer), DependenceKind::kStorage);
      }
    }
    for_each_buffer(storages_.writes(node_),
                    [&](BufferId buffer) { write(storage(buffer), DependenceKind::kStorage); });
  }

  void start_collective(std::span<const BufferId> buffers) {
    for_each_buffer(buffers, [&](BufferId buffer) { collectives_[storages_.alias_class(buffer)].push_back(node_); });
  }

  void visit_wait() {
    for_each_buffer(storages_.reads(node_), [&](BufferId buffer) {
      const BufferId memory = storages_.alias_class(buffer);
      is_waited_[memory] = true;
      write(storages_now_[memory], DependenceKind::kStorage);
      for (const NodeId collective : collectives_[memory]) end_reads(collective);
      collectives_[memory].clear();
    });
  }

  void end_reads(NodeId collective) {
    const std::span<const BufferId> written = storages_.writes(collective);
    for (const BufferId buffer : storages_.reads(collective)) {
      if (!is_tracked(buffer) || std::ranges::binary_search(written, buffer)) continue;
      read(storage(buffer), DependenceKind::kStorage);
    }
  }

  // -- sizes, strides and storage of tensors

  void visit_metadata() {
    if (changes_.empty()) return;
    graph_.for_each_input(node_, [this](NodeId input) {
      for (const ObjectId id : storages_.objects(input)) {
        const ObjectId object = storages_.object_class(id);
        if (is_changed_.get(object)) read(objects_now_[object], DependenceKind::kMetadata);
      }
    });
    for (; next_change_ < changes_.size() && changes_[next_change_].place <= place_; ++next_change_) {
      if (changes_[next_change_].place != place_) continue;
      write(objects_now_[changes_[next_change_].object], DependenceKind::kMetadata);
    }
  }

  // -- effects besides memory

  void visit_effects() {
    if (has(Effect::kRandom) && !is_recorded_draw(graph_, node_)) write(generators_, DependenceKind::kRandom);
    if (has(Effect::kCollective)) visit_collective();
    if (has_effect(all_effects_, Effect::kOpaque | Effect::kBarrier)) {
      if (has(Effect::kOpaque | Effect::kBarrier)) {
        write(world_, DependenceKind::kEffect);
      } else if (has(kAnyEffect)) {
        read(world_, DependenceKind::kEffect);
      }
    }
    if (has_effect(all_effects_, Effect::kChangesMode)) {
      has(Effect::kChangesMode) ? write(modes_, DependenceKind::kMode) : read(modes_, DependenceKind::kMode);
    }
    if (has_events_) visit_stream();
  }

  void visit_collective() {
    const GroupKey group = group_of_call(graph_, node_);
    const bool is_known = group.uid.is_valid() && !group.expr.is_valid() && !graph_.op(node_).has_subgraphs;
    if (is_known) {
      read(groups_, DependenceKind::kCollective);
      write(group_[group.uid], DependenceKind::kCollective);
    } else {
      write(groups_, DependenceKind::kCollective);
    }
  }

  void visit_stream() {
    Resource& stream = streams_[stream_of(graph_, node_).value_or(StringId())];
    if (!has_events(graph_, node_)) return read(stream, DependenceKind::kEvent);
    write(stream, DependenceKind::kEvent);
    write(events_, DependenceKind::kEvent);
  }

  const Graph& graph_;
  const StorageMap& storages_;
  DependenceMap& map_;
  std::vector<Effect> effects_;  // by place in the schedule
  Effect all_effects_ = Effect::kNone;
  bool has_events_ = false;
  std::vector<StorageMap::MetadataChange> changes_;  // by place
  IdMap<ObjectId, bool> is_changed_;

  IdMap<BufferId, Resource> storages_now_;              // by alias class
  IdMap<BufferId, bool> is_waited_;                     // by alias class
  HashMap<BufferId, std::vector<NodeId>> collectives_;  // by alias class: collectives without a wait so far
  IdMap<ObjectId, Resource> objects_now_;               // by class
  Resource generators_, world_, modes_, groups_, events_;
  HashMap<StringId, Resource> group_, streams_;
  std::vector<Read> reads_;
  IdMap<NodeId, NodeId> stamps_;  // the last node that was made to depend on each node
  NodeId node_;
  uint32_t place_ = 0;
  size_t next_change_ = 0;
};

DependenceMap::DependenceMap(const Graph& graph, EffectMap& effects, const StorageMap& storages) : graph_(&graph) {
  Builder(graph, effects, storages, *this).run();
  for (const NodeId node : graph.nodes()) {
    if (graph[node].runs()) break;
    if (graph[node].kind == NodeKind::kPlaceholder) inputs_end_ = node;
  }
  find_followers();
}

void DependenceMap::find_followers() {
  of_followers_ = IdMap<NodeId, Slice>(graph_->num_ids());
  for (const Dependence& dependence : dependences_) ++of_followers_[dependence.on].count;
  uint32_t next = 0;
  for (const NodeId node : graph_->nodes()) {
    Slice& slice = of_followers_[node];
    slice.first = next;
    next += std::exchange(slice.count, 0);
  }
  followers_.resize(next);
  for (const NodeId node : graph_->nodes()) {
    for (const Dependence& dependence : of(node)) {
      Slice& slice = of_followers_[dependence.on];
      followers_[slice.first + slice.count++] = {node, dependence.why};
    }
  }
}

DependenceMap::Range DependenceMap::range(NodeId node) const {
  const Graph& graph = *graph_;
  const auto border = [](NodeId at) {
    return at.is_valid() ? std::optional(Dependence{at, DependenceKind::kBoundary}) : std::nullopt;
  };
  const NodeKind kind = graph[node].kind;
  if (kind == NodeKind::kPlaceholder || kind == NodeKind::kOutput) {
    return {border(graph.prev(node)), border(graph.next(node))};
  }
  Range range;
  if (graph[node].runs()) range.after = border(inputs_end_);
  if (graph[graph.last()].kind == NodeKind::kOutput) range.before = border(graph.last());
  for (const Dependence& each : of(node)) {
    if (!range.after.has_value() || graph.position(each.on) > graph.position(range.after->on)) range.after = each;
  }
  for (const Dependence& each : followers(node)) {
    if (!range.before.has_value() || graph.position(each.on) < graph.position(range.before->on)) range.before = each;
  }
  return range;
}

std::optional<Dependence> DependenceMap::obstacle(NodeId node, NodeId before) const {
  if (before == node || graph_->next(node) == before) return std::nullopt;
  const uint32_t end = static_cast<uint32_t>(graph_->num_nodes());
  const uint32_t to = before.is_valid() ? graph_->position(before) : end;
  const auto [above, below] = range(node);
  const bool is_upwards = to < graph_->position(node);
  if (is_upwards) return above.has_value() && graph_->position(above->on) >= to ? above : std::nullopt;
  return below.has_value() && graph_->position(below->on) < to ? below : std::nullopt;
}

std::optional<DependenceMap::Violation> DependenceMap::violation(std::span<const NodeId> order) const {
  const Graph& graph = *graph_;
  IdMap<NodeId, uint32_t> places(graph.num_ids(), 0);  // the place + 1, or 0 before the node is placed
  NodeId last_placeholder, first_call;
  for (size_t i = 0; i < order.size(); ++i) {
    const NodeId node = order[i];
    for (const Dependence& each : of(node)) {
      if (places.get(each.on) == 0) return Violation{node, each};
    }
    places[node] = static_cast<uint32_t>(i + 1);
    if (graph[node].runs() && !first_call.is_valid()) first_call = node;
    if (graph[node].kind != NodeKind::kPlaceholder) continue;
    const bool is_late =
        first_call.is_valid() && inputs_end_.is_valid() && graph.position(node) <= graph.position(inputs_end_);
    if (is_late) return Violation{first_call, {node, DependenceKind::kBoundary}};
    const bool is_swapped = last_placeholder.is_valid() && graph.position(node) < graph.position(last_placeholder);
    if (is_swapped) return Violation{last_placeholder, {node, DependenceKind::kBoundary}};
    last_placeholder = node;
  }
  const NodeId last = graph.last();
  if (!order.empty() && graph[last].kind == NodeKind::kOutput && order.back() != last) {
    return Violation{last, {order.back(), DependenceKind::kBoundary}};
  }
  return std::nullopt;
}

}  // namespace fxopt
