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

// Graphs with the strings, symbols, storages, groups, constants and counters they share. The first
// graph in order is the main one.
class Module {
 public:
  Module();
  Module& operator=(const Module&) = delete;

  // A deep copy with the same ids in every table: it prints the same bytes, and neither sees edits
  // of the other. O(size of the module).
  std::unique_ptr<Module> clone() const;

  // -- shared tables
  Interner strings;
  ExprTable exprs;
  Pool pool;  // holds the module's own records and metadata

  StringId intern(std::string_view text) { return strings.intern(text); }
  std::string_view text(StringId id) const { return id.is_valid() ? strings[id] : std::string_view(); }

  DimsId dims(const std::vector<Dim>& dims);
  const std::vector<Dim>& dims(DimsId id) const { return dims_[id.index()]; }
  // Row-major strides of `sizes` (a size below 1 counts as 1, as in the framework). Symbolic sizes
  // give symbolic strides.
  DimsId contiguous_strides(DimsId sizes);

  TargetId target(std::string_view name);
  const Target& target(TargetId id) const { return targets_[id.index()]; }
  // Invalid if nothing in the module names it: ask once, then compare ids.
  TargetId find_target(std::string_view name) const;
  size_t num_targets() const { return targets_.size(); }
  // Looks op_schemas up again for every target. Call it after they changed.
  void resolve_targets();

  SourceId source(const Source& source);
  const Source& source(SourceId id) const { return sources_[id.index()]; }
  RegionId region(const Region& region);
  const Region& region(RegionId id) const { return regions_[id.index()]; }
  uint32_t placements(std::vector<Placement> list);                // for Tensor::placements; 0 for an empty list
  const std::vector<Placement>& placements(uint32_t index) const;  // index from placements(), not 0

  // -- storages: a dense id in memory, a 64-bit id in files
  StorageId add_storage(StorageRecord record);  // record.id must be new
  StorageId fresh_storage(Integer bytes, StringId device);
  StorageId find_storage(uint64_t id) const;  // invalid if none exists
  const StorageRecord& storage(StorageId id) const { return storages_[id.index()]; }
  size_t num_storages() const { return storages_.size(); }

  // -- graphs: ids are never reused, a removed graph leaves a hole among them
  Graph& add_graph(StringId name);  // last in order; the name must be free
  // The present graphs, in the order of the file. Valid until a graph is added or removed.
  const std::vector<GraphId>& graphs() const { return order_; }
  size_t num_graphs() const { return order_.size(); }
  size_t num_graph_ids() const { return graphs_.size(); }  // ids are below this
  size_t num_nodes() const;                                // summed over graphs. O(graphs)
  bool has_graph(GraphId id) const { return id.index() < graphs_.size() && graphs_[id.index()] != nullptr; }
  Graph& graph(GraphId id) { return *graphs_[id.index()]; }
  const Graph& graph(GraphId id) const { return *graphs_[id.index()]; }
  GraphId find_graph(StringId name) const;  // invalid if none exists
  // Renames graphs, from old to new names, and everything that names them: attributes, arguments,
  // owners, invocations, symbols, origins. Names must differ afterwards. O(size of the module).
  void rename_graphs(const IdMap<StringId, StringId>& names);
  // Removes graphs, but not all. The caller must change other references to them (attributes,
  // arguments, invocations). Also removes the counters of names in these graphs.
  // O(graphs + counters).
  void remove_graphs(const std::vector<GraphId>& ids);
  // Removes `old` and puts `by`, graphs of this module, in its place, in this order. A partitioner
  // replaces the graph it splits by forward and backward in this way. O(graphs + counters).
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
  std::optional<std::string> profile, memory_plan;  // serialized messages, carried

  // -- counters: part of the file, so that a pipeline and its pieces number alike
  uint64_t next_uid = 0;
  uint64_t next_storage = 0;
  std::map<std::pair<GraphId, std::string>, uint64_t> name_counters;  // (graph, base) -> next suffix

  uint64_t fresh_uid() { return next_uid++; }

  // The next suffix that Graph::fresh_name tries for `base` in `graph`, a graph of this module.
  uint64_t& name_counter(const Graph& graph, std::string_view base);

  // A counter as files record it: by the graph's place in order.
  struct PlacedCounter {
    uint32_t graph;
    std::string_view base;
    uint64_t next;
  };
  std::vector<PlacedCounter> placed_counters() const;  // sorted by graph and base. O(graphs + counters)

 private:
  // A member that a copy of its owner does not copy.
  template <class T>
  struct NotCopied : T {
    NotCopied() = default;
    NotCopied(const NotCopied&) : T() {}
  };

  Module(const Module&) = default;  // without graphs, and with pointers to the original: for clone()
  const Op* resolve(std::string_view name);

  std::vector<std::vector<Dim>> dims_;
  std::unordered_multimap<uint64_t, DimsId> dims_index_;
  std::deque<Target> targets_;
  IdMap<StringId, TargetId> target_index_;
  std::deque<Op> ops_;                                 // described by the file
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
