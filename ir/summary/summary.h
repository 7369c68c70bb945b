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
  StorageSum made;  // by its nodes
};

struct OpRow {
  TargetId target;
  ComputeClass kind = ComputeClass::kOther;
  size_t calls = 0;
  PhaseCounts phases{};  // calls
  StorageSum made;
};

// The calls of one kind of work.
struct KindRow {
  ComputeClass kind = ComputeClass::kOther;
  size_t calls = 0;
  PhaseCounts phases{};
  StorageSum made;
  std::vector<size_t> ops;  // positions in GraphSummary::ops
};

// The placeholders of one role, or all attributes.
struct InputRow {
  InputRole role = InputRole::kUnspecified;
  size_t nodes = 0;
  size_t tensors = 0;           // different ones: those that are one view of one storage (tied weights) count once
  size_t tied = 0;              // further nodes for such a tensor
  size_t parts = 0;             // of the tensors, those that are parts of a tensor subclass, such as a rank's shard
  int64_t elements = 0;         // of the tensors, where known, exact up to 2^63 - 1
  size_t unknown_elements = 0;  // tensors without a known number of elements
  StorageSum storages;
  std::map<DType, size_t> dtypes;  // tensors
};

struct DTypeRow {
  DType dtype = DType::kUnspecified;
  size_t tensors = 0;   // among the values
  StorageSum storages;  // whose first tensor has it
};

struct IdealPeak {
  StringId device;  // invalid: not recorded
  int64_t bytes = 0;
  NodeId node;
};

// What a graph, or a part of it, is made of. Rows are sorted biggest first, by what their comment says.
struct GraphSummary {
  const Graph* graph = nullptr;
  Validity validity = Validity::kValid;  // broken: phases are as stored, and storages are not told
  bool is_part = false;
  size_t nodes = 0;
  size_t edges = 0;                    // between these nodes
  size_t edges_in = 0, edges_out = 0;  // of a part: from and to the rest
  size_t calls = 0;

  std::map<Phase, size_t> stored_phases;
  bool phases_derived = false;
  std::vector<PhaseRow> phases;  // in the order of the phases
  std::map<Tag, size_t> tags;    // of tagged nodes
  std::map<OutputRole, size_t> outputs;
  bool roles_derived = false;
  std::vector<InputRow> inputs;                    // bytes, then nodes
  InputRow attributes;                             // get_attr of tensors; those of subgraphs are only in `nodes`
  StorageSum made;                                 // by nodes
  StorageSum storages;                             // in all
  std::vector<NodeId> unknown_nodes;               // that make storages of unknown size, in schedule order
  std::vector<IdealPeak> peaks;                    // of a whole valid graph: as analyze_memory() says
  std::vector<DTypeRow> dtypes;                    // tensors
  std::vector<KindRow> kinds;                      // calls
  std::vector<OpRow> ops;                          // calls, then bytes made, then name
  std::vector<std::pair<Effect, size_t>> effects;  // calls that have one
  ModuleTree modules;
  std::vector<GroupRow> groups;
  std::vector<OpaqueRow> opaque;
};

// `part`: the nodes to look at, in schedule order; nullptr stands for all. A storage belongs to the node that makes it;
// placeholders of one storage to the first of them in the part. Symbols have the values of their hints. The summary
// refers to the graph and is good until it changes. `subgraphs`: shared by the summaries of several graphs of a module,
// so that what they run is looked into once.
// O((nodes + edges + values + components of module paths) * log).
GraphSummary summarize(const Graph& graph, Validity validity, const std::vector<NodeId>* part = nullptr);
GraphSummary summarize(const Graph& graph, Validity validity, const std::vector<NodeId>* part,
                       SubgraphEffects& subgraphs);

}  // namespace fxopt
