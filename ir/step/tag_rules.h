#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/alias/storages.h"
#include "ir/graph/graph.h"
#include "ir/step/marks.h"
#include "ir/step/phases.h"

namespace fxopt {

// Which rules decide: the project's ordered list, or what PyTorch 2.15 does with the same tags (no inheritance by
// views, getitems and waits; regions only by explicit id; tags of backward nodes count).
enum class TagRules : uint8_t {
  kFxopt,
  kTorch,
};

// Whether PREFER_RECOMPUTE wins over the mark of a value (ir/step/marks.h).
enum class PreferRecompute : uint8_t {
  kWins,   // it is recomputed
  kLoses,  // it is saved
  kRecompute,
  kSave,  // the same in earlier words
};
template <>
struct EnumNames<PreferRecompute> {
  static constexpr EnumName<PreferRecompute> kAll[] = {{PreferRecompute::kWins, "wins"},
                                                       {PreferRecompute::kLoses, "loses"}};
  static constexpr EnumName<PreferRecompute> kOld[] = {{PreferRecompute::kRecompute, "recompute"},
                                                       {PreferRecompute::kSave, "save"}};
};

// One row of the list that passes, `explain`, `tags`, help and the verifier share.
struct TagRuleText {
  TagRule rule = TagRule::kNone;
  std::string_view situation;  // which values it is about
  std::string_view result;     // what becomes of them
  std::string_view reason;     // the same of one value, as a sentence about it
  std::string_view remedy;     // what gives the other result; empty where nothing does
};

// All rules but kNone: first those that decide from tags, in the order they are tried, the first that matches decides;
// then those that hold a decided recompute back, or tell of its way; then what is about merging tags.
std::span<const TagRuleText> tag_rules();
// The row of a rule; for kNone and unknown ones the row of an untagged value.
const TagRuleText& tag_rule(TagRule rule);

struct TagDecision {
  Tag effective = Tag::kNone;     // the node's own tag, or the one it inherits
  bool recompute = false;         // what becomes of the value when backward needs it
  TagRule rule = TagRule::kNone;  // what decided; kNone: no tag and no rule, saved
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
  MarkMap marks;  // of the graph
  // Nodes that must be recomputed and cannot be: an error once backward needs one.
  std::vector<Unrepeatable> unrepeatable;
  std::vector<TagRemark> remarks;
  // A view is computed again even where the memory it is a view of is kept, so that nothing but that is saved.
  bool copies_views = false;
  // What makes backward compute an unrepeatable value again, and what to do about it, in the words of the error.
  std::string_view wanted = "is tagged for recompute";
  std::string_view remedy = "tag it MUST_SAVE; tagged PREFER_RECOMPUTE it is saved, too, with a remark";
};

// Why running the node twice would not give the same values: "writes its argument", "draws random numbers from no
// recorded slot", ... Empty when it can be repeated. A random op with a recorded slot can.
std::string_view why_unrepeatable(const Graph& graph, NodeId node, EffectMap& effects);

// The place of a checkpoint region in the order of regions.
struct RegionKey {
  bool exists = false;
  bool is_explicit = false;  // by region id; else by layer
  int64_t order = 0;
  bool operator==(const RegionKey&) const = default;
  // Later in the same kind of order. Regions of different kinds are not compared.
  bool is_before(const RegionKey& other) const {
    return exists && other.exists && is_explicit == other.is_explicit && order < other.order;
  }
};

// The explicit region id, else the layer: the first component of the module path that is a number.
RegionKey region_key(const Graph& graph, NodeId node, TagRules rules);

// -1 when no component of `module_path` is a number.
int64_t layer_of(std::string_view module_path);

// Whether one of our passes wrote the tag by a policy, rather than the author of the file. O(1).
bool is_policy_tag(const Graph& graph, NodeId node);

// Decides every node's tag and mark by the first rule that matches. Whether a copy may be made depends on where it would be, so
// remat applies the rules about that. O(nodes + edges).
TagDecisions decide_tags(const Graph& graph, const PhaseMap& phases, const StorageMap& storages, EffectMap& effects,
                         TagRules rules, PreferRecompute prefer = PreferRecompute::kWins);

}  // namespace fxopt
