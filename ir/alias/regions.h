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
// results for every call. The recorded storages of these results are therefore meaningless. The
// recorded storages of a backward graph's placeholders that represent these results are meaningless
// for the same reason. The storages of results are read from the region's body instead.

// The position of the first argument that is passed to the body. The earlier arguments are the
// graph and the graph's name.
constexpr size_t kFirstOperand = 2;

// Whether the module has calls of regions, and whether a node is a call of a region. O(1) expected.
bool has_regions(const Module& module);
bool calls_region(const Graph& graph, NodeId node);

// Whether the placeholder may represent a region's result. A storage recorded for several of these
// placeholders is unreliable. False for inputs from the caller's code, because tracers pass these
// inputs on unchanged. O(1) expected.
bool may_be_of_region(const Graph& graph, NodeId placeholder);

// The storage of one tensor that a region returns. This storage is the storage of an operand's
// tensor, or a storage that the region created.
struct RegionResult {
  static constexpr uint32_t kMade = UINT32_MAX;
  uint32_t operand = kMade;         // index of the operand, or kMade
  uint32_t tensor = 0;              // index among the operand's tensors
  uint32_t made = 0;                // for kMade: results with the same number share a storage
  std::vector<uint32_t> may_share;  // other operands whose memory the result may share
};

// The results of the bodies of a module's regions. Each body is examined on first use. A body may
// call other regions. Valid until a body changes.
class RegionBodies {
 public:
  explicit RegionBodies(const Module& module) : module_(&module) {}

  // Returns the tensors that the graph returns, depth first. Returns nullptr if the tensors are
  // unknown. In this case, no graph has the name, the graph runs itself, or regions are nested more
  // than 16 deep. Takes O(nodes + edges) for each body on its first use.
  using Results = std::vector<RegionResult>;
  const Results* find(StringId name);

 private:
  static constexpr int kMaxDepth = 16;

  const Module* module_;
  HashMap<StringId, std::unique_ptr<const Results>> bodies_;  // null if unknown, or while it is examined
  int depth_ = 0;
};

}  // namespace fxopt
