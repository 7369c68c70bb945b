#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/hash_table.h"
#include "ir/graph/graph.h"
#include "ir/graph/module.h"

namespace fxopt {

// A region is a graph that is called once for each layer (`torch.compiler.nested_compile_region`, the operator invoke_subgraph). Fake
// tracing runs it once and hands out the same fake results for every call, so that the recorded storages of what calls return say
// nothing, and neither do those of placeholders of a backward graph that stand for them. Where results lie is read from the region's
// body.

// The position of the first argument that is given to the body: after the graph and its name.
constexpr size_t kFirstOperand = 2;

// Whether a call of the module runs a region. O(1) expected.
bool has_regions(const Module& module);
bool calls_region(const Graph& graph, NodeId node);

// Whether the placeholder may stand for what a region returned, so that a storage recorded for several of them is no fact: all but
// inputs that the caller's code is given, which tracers hand over as they are. O(1) expected.
bool may_be_of_region(const Graph& graph, NodeId placeholder);

// Where one tensor that a region returns lies: on a tensor that it was given, or on one that it made.
struct RegionResult {
  static constexpr uint32_t kMade = UINT32_MAX;
  uint32_t operand = kMade;         // its place among the operands
  uint32_t tensor = 0;              // of the operand: its place among the operand's tensors
  uint32_t made = 0;                // kMade: results of one number lie on one storage
  std::vector<uint32_t> may_share;  // operands whose memory it may share besides
};

// What the bodies of regions of a module return, each looked into when it is first asked about. Bodies may call regions in turn. Good
// until a body changes.
class RegionBodies {
 public:
  explicit RegionBodies(const Module& module) : module_(&module) {}

  // The tensors that the graph returns, depth first; nullptr where nothing is known: there is no graph of the name, it runs itself, or
  // regions are nested more than 16 deep. O(nodes + edges) of what is looked into, once.
  const std::vector<RegionResult>* find(StringId name);

 private:
  static constexpr int kMaxDepth = 16;
  struct Body {
    bool is_known = false;
    std::vector<RegionResult> results;
  };

  const Module* module_;
  HashMap<StringId, std::unique_ptr<Body>> bodies_;  // not known while they are looked into
  int depth_ = 0;
};

}  // namespace fxopt
