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

// The rules that decide: fxopt's ordered list, or the behaviour of PyTorch 2.15 with the same tags
// (views, getitems and waits inherit nothing; regions only by explicit id; tags of backward nodes
// count).
enum class TagRules : uint8_t {
  kFxopt,
  kTorch,
};

// Whether PREFER_RECOMPUTE wins over the mark of a value (ir/step/marks.h).
enum class PreferRecompute : uint8_t {
  kWins,   // the value is recomputed
  kLoses,  // the value is saved
  kRecompute,
  kSave,  // older spellings of the two above
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
  std::string_view situation;  // the values it applies to
  std::string_view result;     // the values' fate
  std::string_view reason;     // the reason for one value, as a sentence about it
  std::string_view remedy;     // how to get the other result; empty if there is no way
};

// All rules except kNone. First the rules that decide from tags, in the order they are tried: the
// first that matches decides. Then those that hold a decided recompute back or describe how it is
// done. Then the one about merging tags.
std::span<const TagRuleText> tag_rules();
// The row of a rule; for kNone and unknown rules, the row of an untagged value.
const TagRuleText& tag_rule(TagRule rule);

struct TagDecision {
  Tag effective = Tag::kNone;     // the node's own tag, or the one it inherits
  bool recompute = false;         // recomputed when backward needs the value; false: saved
  TagRule rule = TagRule::kNone;  // the rule that decided; kNone: no tag and no rule, saved
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
  MarkMap marks;  // the graph's marks
  // Nodes that must be recomputed but cannot be: an error if backward needs one.
  std::vector<Unrepeatable> unrepeatable;
  std::vector<TagRemark> remarks;
  // Views are recomputed even if the memory they are views of is kept, so that only that memory is
  // saved.
  bool copies_views = false;
  // Why backward must recompute an unrepeatable value, and what to do about it, in the words of the
  // error.
  std::string_view wanted = "is tagged for recompute";
  std::string_view remedy = "tag it MUST_SAVE, or PREFER_RECOMPUTE to save it with a remark";
};

// Why running the node twice would not give the same values: "writes its argument", "draws random
// numbers from no recorded slot", ... Empty if it can be repeated. A random operator with a
// recorded slot can.
std::string_view why_unrepeatable(const Graph& graph, NodeId node, EffectMap& effects);

// The place of a checkpoint region in the order of regions.
struct RegionKey {
  bool exists = false;
  bool is_explicit = false;  // by region id; else by layer
  int64_t order = 0;
  bool operator==(const RegionKey&) const = default;
  // Whether this region comes before the other in the same kind of order. Regions of different
  // kinds are not compared.
  bool is_before(const RegionKey& other) const {
    return exists && other.exists && is_explicit == other.is_explicit && order < other.order;
  }
};

// The explicit region id, else the layer: the first component of the module path that is a number.
RegionKey region_key(const Graph& graph, NodeId node, TagRules rules);

// -1 if no component of `module_path` is a number.
int64_t layer_of(std::string_view module_path);

// Whether a policy of an fxopt pass wrote the tag, rather than the author of the file. O(1).
bool is_policy_tag(const Graph& graph, NodeId node);

// Decides every node's tag and mark by the first rule that matches. Whether a copy is possible
// depends on its place, so remat applies the rules about copies. O(nodes + edges).
TagDecisions decide_tags(const Graph& graph, const PhaseMap& phases, const StorageMap& storages, EffectMap& effects,
                         TagRules rules, PreferRecompute prefer = PreferRecompute::kWins);

}  // namespace fxopt
