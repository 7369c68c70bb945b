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
// the operator invoke_subgraph). Fake tracing runs it once and returns the same fake results for
// every call. The recorded storages of these results are therefore meaningless, and so are those of
// placeholders of a backward graph that stand for them. The storages of results are read from the
// region's body instead.

// The position of the first argument that is passed to the body: after the graph and its name.
constexpr size_t kFirstOperand = 2;

// Whether the module has calls of regions, and whether a node is one. O(1) expected.
bool has_regions(const Module& module);
bool calls_region(const Graph& graph, NodeId node);

// Whether the placeholder may stand for a region's result, so that a storage recorded for several
// placeholders is unreliable. False for inputs from the caller's code, which tracers pass on
// unchanged. O(1) expected.
bool may_be_of_region(const Graph& graph, NodeId placeholder);

// The storage of one tensor that a region returns: that of a tensor it was given, or one it made.
struct RegionResult {
  static constexpr uint32_t kMade = UINT32_MAX;
  uint32_t operand = kMade;         // index of the operand
  uint32_t tensor = 0;              // index among the operand's tensors
  uint32_t made = 0;                // kMade: results of one number share a storage
  std::vector<uint32_t> may_share;  // other operands whose memory it may share
};

// The results of the bodies of a module's regions. Each body is examined on first use. Bodies may
// call regions in turn. Valid until a body changes.
class RegionBodies {
 public:
  explicit RegionBodies(const Module& module) : module_(&module) {}

  // The tensors that the graph returns, depth first. nullptr if they are unknown: no graph has the
  // name, it runs itself, or regions are nested more than 16 deep. O(nodes + edges) of the examined
  // bodies, once.
  const std::vector<RegionResult>* find(StringId name);

 private:
  static constexpr int kMaxDepth = 16;
  struct Body {
    bool is_known = false;
    std::vector<RegionResult> results;
  };

  const Module* module_;
  HashMap<StringId, std::unique_ptr<Body>> bodies_;  // is_known is false during the examination
  int depth_ = 0;
};

}  // namespace fxopt
