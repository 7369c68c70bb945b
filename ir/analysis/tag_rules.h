#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/analysis/phases.h"
#include "ir/analysis/storages.h"
#include "ir/graph/graph.h"

namespace fxopt {

// Which rules decide: the project's ordered list, or what PyTorch 2.15 does with the same tags (no inheritance by
// views, getitems and waits; regions only by explicit id; tags of backward nodes count).
enum class TagRules : uint8_t {
  kFxopt,
  kTorch,
};

// The rules of the list a decision can name, by their number there.
constexpr uint8_t kRuleBackwardTag = 1;
constexpr uint8_t kRuleSymbol = 2;
constexpr uint8_t kRuleUnrepeatable = 3;
constexpr uint8_t kRuleRandomSlot = 4;
constexpr uint8_t kRuleMutation = 5;
constexpr uint8_t kRuleRegionBoundary = 6;
constexpr uint8_t kRuleMustRecompute = 7;
constexpr uint8_t kRulePreferRecompute = 8;
constexpr uint8_t kRuleApMustSave = 9;
constexpr uint8_t kRuleMustSave = 10;
constexpr uint8_t kRuleInherited = 11;
constexpr uint8_t kRuleCollective = 13;
constexpr uint8_t kRuleOffload = 14;

struct TagDecision {
  Tag effective = Tag::kNone;  // the node's own tag, or the one it inherits
  bool recompute = false;      // what becomes of the value when backward needs it
  uint8_t rule = 0;            // the rule that decided; 0: no tag and no rule, saved
};

struct TagRemark {
  NodeId node;
  std::string_view code;
  std::string text;
};

struct Unrepeatable {
  NodeId node;
  std::string_view reason;  // see why_unrepeatable()
};

struct TagDecisions {
  IdMap<NodeId, TagDecision> of;
  // Nodes that must be recomputed and cannot be (rule 3): an error once backward needs one.
  std::vector<Unrepeatable> unrepeatable;
  std::vector<TagRemark> remarks;
};

// Why running the node twice would not give the same values: "writes its argument", "draws random numbers from no
// recorded slot", ... Empty when it can be repeated. A random op with a recorded slot can.
std::string_view why_unrepeatable(const Graph& graph, NodeId node, EffectMap& effects);

// The place of a checkpoint region in the order of regions.
struct RegionKey {
  bool exists = false;
  bool is_explicit = false;  // by region id; else by layer
  int64_t order = 0;
  // Later in the same kind of order. Regions of different kinds are not compared.
  bool is_before(const RegionKey& other) const {
    return exists && other.exists && is_explicit == other.is_explicit && order < other.order;
  }
};

// The explicit region id, else the layer: the first component of the module path that is a number.
RegionKey region_key(const Graph& graph, NodeId node, TagRules rules);

// -1 when no component of `module_path` is a number.
int64_t layer_of(std::string_view module_path);

// Decides every node's tag by the first rule that matches. Rule 5 depends on where a copy would stand, so remat applies
// it. O(nodes + edges).
TagDecisions decide_tags(const Graph& graph, const PhaseMap& phases, const StorageMap& storages, EffectMap& effects,
                         TagRules rules);

}  // namespace fxopt
