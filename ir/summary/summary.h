#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "ir/alias/collectives.h"
#include "ir/graph/graph.h"
#include "ir/ops/op.h"
#include "ir/summary/module_tree.h"
#include "ir/summary/opaque.h"

namespace fxopt {

class SubgraphEffects;

struct PhaseRow {
  Phase phase = Phase::kUnspecified;
  size_t nodes = 0;
  size_t calls = 0;
  StorageSum made;  // storages made by nodes of this phase
};

struct OpRow {
  TargetId target;
  ComputeClass kind = ComputeClass::kOther;
  size_t calls = 0;
  PhaseCounts phases{};  // number of calls by phase
  StorageSum made;
};

// The calls of one compute class.
struct KindRow {
  ComputeClass kind = ComputeClass::kOther;
  size_t calls = 0;
  PhaseCounts phases{};
  StorageSum made;
  std::vector<size_t> ops;  // indices in GraphSummary::ops
};

// The placeholders of one role, or all attributes.
struct InputRow {
  InputRole role = InputRole::kUnspecified;
  size_t nodes = 0;
  // Number of different tensors. Nodes with the same view of one storage (tied weights) are counted
  // once.
  size_t tensors = 0;
  size_t tied = 0;  // number of additional nodes whose tensor was already counted
  // The number of tensors that are components of a tensor subclass, such as the shard of a rank.
  size_t parts = 0;
  // The total number of elements in the tensors whose number of elements is known. The sum is exact
  // below 2^63.
  int64_t elements = 0;
  size_t unknown_elements = 0;  // number of tensors whose number of elements is unknown
  StorageSum storages;
  std::map<DType, size_t> dtypes;  // number of tensors by dtype
};

struct DTypeRow {
  DType dtype = DType::kUnspecified;
  size_t tensors = 0;   // number of tensors among the values
  StorageSum storages;  // storages whose first tensor has this dtype
};

struct IdealPeak {
  StringId device;  // invalid if not recorded
  int64_t bytes = 0;
  NodeId node;
};

// The contents of a graph, or of a selection of its nodes. The comment of a vector states its sort
// keys. Counts and bytes are sorted in descending order.
struct GraphSummary {
  const Graph* graph = nullptr;
  // For a broken graph, the phases are read from the file, and storages are unknown.
  Validity validity = Validity::kValid;
  bool is_part = false;
  size_t nodes = 0;
  // Number of edges that start and end at summarized nodes.
  size_t edges = 0;
  // For a selection: number of edges from other nodes to the selection, and from the selection to
  // other nodes.
  size_t edges_in = 0, edges_out = 0;
  size_t calls = 0;

  std::map<Phase, size_t> stored_phases;
  bool phases_derived = false;
  std::vector<PhaseRow> phases;  // sorted by phase
  std::map<Tag, size_t> tags;    // number of tagged nodes by tag
  std::map<OutputRole, size_t> outputs;
  bool roles_derived = false;
  std::vector<InputRow> inputs;  // sorted by bytes, then by nodes
  // The get_attr nodes of tensors. A get_attr of a subgraph is counted in GraphSummary::nodes, but
  // not here.
  InputRow attributes;
  StorageSum made;      // storages made by the nodes
  StorageSum storages;  // all storages
  // Nodes whose storages have unknown sizes, in schedule order.
  std::vector<NodeId> unknown_nodes;
  // The peaks of analyze_memory(). Present only for a whole valid graph.
  std::vector<IdealPeak> peaks;
  std::vector<DTypeRow> dtypes;  // sorted by number of tensors
  std::vector<KindRow> kinds;    // sorted by number of calls
  // Sorted by calls, then by bytes made, then by name.
  std::vector<OpRow> ops;
  std::vector<std::pair<Effect, size_t>> effects;  // number of calls with each effect
  ModuleTree modules;
  std::vector<GroupRow> groups;
  std::vector<OpaqueRow> opaque;
};

// Summarizes a graph, or the nodes of `part`, which must be in schedule order. If `part` is
// nullptr, all nodes are summarized. A storage is counted for the node that makes it. If several
// placeholders share a storage, the storage is counted for the first of these placeholders in the
// selection. Symbols have the values of their hints. The summary refers to the graph and is valid
// until the graph changes. `subgraphs` (second overload) caches the effects of subgraphs. If the
// caller uses the same cache for several graphs of one module, each subgraph is analyzed only once.
// O((nodes + edges + values + components of module paths) * log).
GraphSummary summarize(const Graph& graph, Validity validity, const std::vector<NodeId>* part = nullptr);
GraphSummary summarize(const Graph& graph, Validity validity, const std::vector<NodeId>* part,
                       SubgraphEffects& subgraphs);

}  // namespace fxopt
