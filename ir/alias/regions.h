#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/hash_table.h"
#include "ir/graph/graph.h"
#include "ir/graph/module.h"

namespace fxopt {

// A region is a graph that is called once for each layer (`torch.compiler.nested_compile_region`,
// the operator invoke_subgraph). Fake tracing runs the region once and returns the same fake
// results for every call. The recorded storages of these results are therefore meaningless. In a
// backward graph, placeholders may represent these results. The recorded storages of these
// placeholders are meaningless for the same reason. The storages of results are read from the
// region's body instead.

// In a call of invoke_subgraph: the position of the first argument that is passed to the body. The
// earlier arguments are the graph and the graph's name.
constexpr size_t kFirstOperand = 2;

// has_regions(): whether the module has calls of regions (invoke_subgraph). calls_region(): whether
// the node is such a call. O(1) expected.
bool has_regions(const Module& module);
bool calls_region(const Graph& graph, NodeId node);

// Whether the placeholder may represent a result of a region (a graph that invoke_subgraph runs).
// If the file records the same storage for several of these placeholders, the placeholders may
// still have separate storages. False if the file records that the placeholder is a parameter or
// another input of the user's function. A tracer gives each of these inputs its correct storage.
// O(1) expected.
bool may_be_of_region(const Graph& graph, NodeId placeholder);

// One tensor that a region returns. A region is a graph that invoke_subgraph runs. The tensor has
// the storage of an operand's tensor, or a storage that the region created.
struct RegionResult {
  static constexpr uint32_t kMade = UINT32_MAX;
  // The index of the operand of invoke_subgraph that has this storage. kMade if the region created
  // the storage.
  uint32_t operand = kMade;
  // Unless `operand` is kMade: the index, in the operand, of the tensor that has this storage. An
  // operand may contain several tensors.
  uint32_t tensor = 0;
  uint32_t made = 0;                // for kMade: results with the same number share a storage
  std::vector<uint32_t> may_share;  // for kMade: operands whose memory the result may share
};

// A cache of the storages of the tensors that each region returns. A region is a graph that
// invoke_subgraph runs. Each region is examined on first use. A region may call other regions.
// Valid until one of the regions changes.
class RegionBodies {
 public:
  explicit RegionBodies(const Module& module) : module_(&module) {}

  // Returns the tensors that the graph `name` returns, depth first. Returns nullptr in three cases:
  // - The module has no graph with this name.
  // - The graph calls itself.
  // - Regions are nested more than 16 deep.
  // Takes O(nodes + edges) for each region on its first use.
  using Results = std::vector<RegionResult>;
  const Results* find(StringId name);

 private:
  static constexpr int kMaxDepth = 16;

  const Module* module_;
  // By name of the graph. Null if the results are unknown, or while the graph is examined.
  HashMap<StringId, std::unique_ptr<const Results>> bodies_;
  int depth_ = 0;
};

}  // namespace fxopt
