#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/graph/expr.h"
#include "ir/graph/graph.h"
#include "ir/graph/ids.h"
#include "ir/graph/pool.h"
#include "ir/graph/records.h"
#include "ir/ops/op.h"

namespace fxopt {

// A call's target, with the operator description that passes use.
struct Target {
  StringId name;
  const Op* op = nullptr;  // never null
};

// Graphs, and the strings, symbols, storages, groups, constants and counters that the graphs share.
// The first graph in order is the main graph.
class Module {
 public:
  Module();
  Module& operator=(const Module&) = delete;

  // Returns a deep copy with the same ids in every table. The copy prints the same bytes. Later
  // edits of one module do not change the other module. O(size of the module).
  std::unique_ptr<Module> clone() const;

  // -- shared tables
  Interner strings;
  ExprTable exprs;
  Pool pool;  // holds the module's own records and metadata

  StringId intern(std::string_view text) { return strings.intern(text); }
  std::string_view text(StringId id) const { return id.is_valid() ? strings[id] : std::string_view(); }

  DimsId dims(const std::vector<Dim>& dims);
  const std::vector<Dim>& dims(DimsId id) const { return dims_[id.index()]; }
  // Returns the row-major strides of `sizes`. A size below 1 is treated as 1, as in PyTorch.
  // Symbolic sizes give symbolic strides.
  DimsId contiguous_strides(DimsId sizes);

  TargetId target(std::string_view name);
  Target target(TargetId id) const { return targets_[id.index()]; }
  // Returns the target's id, or an invalid id if the module does not have the target. Call this
  // once, and then compare ids.
  TargetId find_target(std::string_view name) const;
  size_t num_targets() const { return targets_.size(); }
  // Looks up every target in op_schemas again. Call this after a change of op_schemas.
  void resolve_targets();

  SourceId source(const Source& source);
  const Source& source(SourceId id) const { return sources_[id.index()]; }
  RegionId region(const Region& region);
  const Region& region(RegionId id) const { return regions_[id.index()]; }
  // Returns an index for Tensor::placements, or 0 for an empty list.
  uint32_t placements(std::vector<Placement> list);
  const std::vector<Placement>& placements(uint32_t index) const;  // `index` must not be 0

  // -- storages

  // Adds a storage and returns its StorageId. A StorageId is a dense index that exists only in
  // memory. Files identify the storage by the 64-bit number `record.id`, which must be new.
  StorageId add_storage(StorageRecord record);
  // Adds a storage with a 64-bit number that no other storage has.
  StorageId fresh_storage(Integer bytes, StringId device);
  // Returns the storage with the 64-bit number `id`, or an invalid StorageId if none exists.
  StorageId find_storage(uint64_t id) const;
  const StorageRecord& storage(StorageId id) const { return storages_[id.index()]; }
  size_t num_storages() const { return storages_.size(); }

  // -- graphs: the ids of removed graphs are never reused, so the ids can have gaps
  Graph& add_graph(StringId name);  // added at the end; the name must be free
  // Returns the graphs that the module has now, in the order of the file. The result is valid until
  // a graph is added or removed.
  const std::vector<GraphId>& graphs() const { return order_; }
  size_t num_graphs() const { return order_.size(); }
  size_t num_graph_ids() const { return graphs_.size(); }  // all ids are below this number
  size_t num_nodes() const;                                // summed over graphs. O(graphs)
  bool has_graph(GraphId id) const { return id.index() < graphs_.size() && graphs_[id.index()] != nullptr; }
  Graph& graph(GraphId id) { return *graphs_[id.index()]; }
  const Graph& graph(GraphId id) const { return *graphs_[id.index()]; }
  GraphId find_graph(StringId name) const;  // invalid if none exists
  // Renames graphs. `names` maps each old name to the new name. Also changes every reference to a
  // renamed graph: attributes, arguments, owners, invocations, symbols, origins. All names must
  // differ afterwards. O(size of the module).
  void rename_graphs(const IdMap<StringId, StringId>& names);
  // Removes graphs. At least one graph must remain. The caller must change the attributes,
  // arguments and invocations that refer to a removed graph. Also removes the name counters of the
  // removed graphs. O(graphs + counters).
  void remove_graphs(const std::vector<GraphId>& ids);
  // Removes `old` and puts the graphs of the list `by` in its place, in the given order. `old` and
  // `by` must be graphs of this module. For example, a partitioner replaces a joint graph by a
  // forward graph and a backward graph. O(graphs + counters).
  void replace_graph(GraphId old, const std::vector<GraphId>& by);
  Graph& main() { return graph(order_.front()); }
  const Graph& main() const { return graph(order_.front()); }

  // -- records
  StringId name;
  std::optional<Producer> producer;
  std::vector<Invocation> invocations;
  std::vector<Symbol> symbols;
  std::vector<Assertion> assertions;
  std::vector<ProcessGroup> groups;
  std::vector<DeviceMesh> meshes;
  std::vector<OpSchemaRecord> op_schemas;
  std::vector<Constant> constants;
  std::vector<RngSlot> rng_slots;
  std::vector<Stream> streams;
  std::optional<RankContext> rank;
  std::vector<ErasedNode> erased;
  ArgRange meta;  // in `pool`
  std::string unknown;
  std::optional<Certificate> certificate;
  std::optional<std::string> profile, memory_plan;  // serialized messages, kept unchanged

  // -- counters: files store the counters, and the next program in a pipeline continues the numbers
  uint64_t next_uid = 0;
  uint64_t next_storage = 0;
  std::map<std::pair<GraphId, std::string>, uint64_t> name_counters;  // (graph, base) -> next suffix

  uint64_t fresh_uid() { return next_uid++; }

  // Returns the next suffix that Graph::fresh_name() tries for `base`. `graph` is a graph of this
  // module.
  uint64_t& name_counter(const Graph& graph, std::string_view base);

  // A counter of Graph::fresh_name(), in the form that files store. `graph` is the graph's index in
  // graphs().
  struct PlacedCounter {
    uint32_t graph;
    std::string_view base;
    uint64_t next;
  };
  // Returns the name counters, sorted by graph and base. O(graphs + counters).
  std::vector<PlacedCounter> placed_counters() const;

 private:
  // A member that is empty in a copy of its owner.
  template <class T>
  struct NotCopied : T {
    NotCopied() = default;
    NotCopied(const NotCopied&) : T() {}
  };

  // Used only by clone(), which then adds the graphs. clone() also redirects the copied pointers
  // from the original module to the copy.
  Module(const Module&) = default;
  const Op* resolve(std::string_view name);

  std::vector<std::vector<Dim>> dims_;
  std::unordered_multimap<uint64_t, DimsId> dims_index_;
  std::vector<Target> targets_;
  IdMap<StringId, TargetId> target_index_;
  std::deque<Op> ops_;                                 // operators that the file describes
  std::unordered_map<StringId, size_t> schema_index_;  // target -> first record of op_schemas
  std::vector<Source> sources_;
  std::unordered_multimap<uint64_t, SourceId> source_index_;
  std::vector<Region> regions_;
  std::unordered_multimap<uint64_t, RegionId> region_index_;
  std::vector<std::vector<Placement>> placements_;
  std::unordered_multimap<uint64_t, uint32_t> placement_index_;
  std::deque<StorageRecord> storages_;
  std::unordered_map<uint64_t, StorageId> storage_index_;
  NotCopied<std::vector<std::unique_ptr<Graph>>> graphs_;  // by id, null for a removed graph
  std::vector<GraphId> order_;
  IdMap<StringId, GraphId> graph_index_;
};

}  // namespace fxopt
