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
  StorageSum made;  // storages made by its nodes
};

struct OpRow {
  TargetId target;
  ComputeClass kind = ComputeClass::kOther;
  size_t calls = 0;
  PhaseCounts phases{};  // calls
  StorageSum made;
};

// The calls of one compute class.
struct KindRow {
  ComputeClass kind = ComputeClass::kOther;
  size_t calls = 0;
  PhaseCounts phases{};
  StorageSum made;
  std::vector<size_t> ops;  // indices into GraphSummary::ops
};

// The placeholders of one role, or all attributes.
struct InputRow {
  InputRole role = InputRole::kUnspecified;
  size_t nodes = 0;
  // Distinct tensors: nodes with the same view of one storage (tied weights) count once.
  size_t tensors = 0;
  size_t tied = 0;  // number of further nodes with such a tensor
  // Number of tensors that are components of a tensor subclass, such as a rank's shard.
  size_t parts = 0;
  int64_t elements = 0;         // sum over tensors where known, exact up to 2^63 - 1
  size_t unknown_elements = 0;  // number of tensors without a known number of elements
  StorageSum storages;
  std::map<DType, size_t> dtypes;  // tensors
};

struct DTypeRow {
  DType dtype = DType::kUnspecified;
  size_t tensors = 0;   // number of tensors among the values
  StorageSum storages;  // storages whose first tensor has this dtype
};

struct IdealPeak {
  StringId device;  // invalid: not recorded
  int64_t bytes = 0;
  NodeId node;
};

// The contents of a graph, or of a selection of its nodes. Rows are sorted largest first, by the
// keys in their comments.
struct GraphSummary {
  const Graph* graph = nullptr;
  Validity validity = Validity::kValid;  // broken: phases are as stored, and storages are unknown
  bool is_part = false;
  size_t nodes = 0;
  size_t edges = 0;                    // between these nodes
  size_t edges_in = 0, edges_out = 0;  // for a selection: edges from and to other nodes
  size_t calls = 0;

  std::map<Phase, size_t> stored_phases;
  bool phases_derived = false;
  std::vector<PhaseRow> phases;  // in the order of the phases
  std::map<Tag, size_t> tags;    // tagged nodes
  std::map<OutputRole, size_t> outputs;
  bool roles_derived = false;
  std::vector<InputRow> inputs;  // bytes, then nodes
  InputRow attributes;           // get_attr of tensors; get_attr of subgraphs count only in `nodes`
  StorageSum made;               // made by nodes
  StorageSum storages;           // all
  // Nodes whose storages have unknown sizes, in schedule order.
  std::vector<NodeId> unknown_nodes;
  std::vector<IdealPeak> peaks;                    // for a whole valid graph: from analyze_memory()
  std::vector<DTypeRow> dtypes;                    // tensors
  std::vector<KindRow> kinds;                      // calls
  std::vector<OpRow> ops;                          // calls, then bytes made, then name
  std::vector<std::pair<Effect, size_t>> effects;  // calls with the effect
  ModuleTree modules;
  std::vector<GroupRow> groups;
  std::vector<OpaqueRow> opaque;
};

// `part`: the nodes to summarize, in schedule order; nullptr: all. A storage counts for the node
// that makes it. A storage shared by several placeholders counts for its first placeholder in the
// selection. Symbols have the values of their hints. The summary refers to the graph and is valid
// until the graph changes. `subgraphs`: shared by the summaries of several graphs of a module, so
// that each subgraph is analyzed once.
// O((nodes + edges + values + components of module paths) * log).
GraphSummary summarize(const Graph& graph, Validity validity, const std::vector<NodeId>* part = nullptr);
GraphSummary summarize(const Graph& graph, Validity validity, const std::vector<NodeId>* part,
                       SubgraphEffects& subgraphs);

}  // namespace fxopt
