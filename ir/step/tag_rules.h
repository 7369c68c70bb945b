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

// The rules that decide about tags. kFxopt is fxopt's ordered list of rules. kTorch is the
// behaviour of PyTorch 2.15 with the same tags. With kTorch, views, getitems and waits do not
// inherit tags. Only explicit ids define regions, and tags of backward nodes have an effect.
enum class TagRules : uint8_t {
  kFxopt,
  kTorch,
};

// Whether PREFER_RECOMPUTE wins over the mark of a value (ir/step/marks.h).
enum class PreferRecompute : uint8_t {
  kWins,   // the value is recomputed
  kLoses,  // the value is saved
  kRecompute,
  kSave,  // kRecompute and kSave are older names of kWins and kLoses
};
template <>
struct EnumNames<PreferRecompute> {
  static constexpr EnumName<PreferRecompute> kAll[] = {{PreferRecompute::kWins, "wins"},
                                                       {PreferRecompute::kLoses, "loses"}};
  static constexpr EnumName<PreferRecompute> kOld[] = {{PreferRecompute::kRecompute, "recompute"},
                                                       {PreferRecompute::kSave, "save"}};
};

// One row of the list of rules. Passes, `explain`, `tags`, the help and the verifier use the same
// list.
struct TagRuleText {
  TagRule rule = TagRule::kNone;
  std::string_view situation;  // the values to which the rule applies
  std::string_view result;     // the fate of these values
  // The reason that is reported for one value, as a sentence about that value.
  std::string_view reason;
  std::string_view remedy;  // how to get the other result; empty if this is impossible
};

// Returns all rules except kNone, in three parts. The first rules decide from tags. These rules are
// tried in order, and the first matching rule decides. The next rules prevent a recompute that was
// decided, or describe how the recompute is done. The last rule is about merging tags.
std::span<const TagRuleText> tag_rules();
// Returns the row of a rule. For kNone and unknown rules, returns the row of an untagged value.
const TagRuleText& tag_rule(TagRule rule);

struct TagDecision {
  Tag effective = Tag::kNone;  // the node's own tag or its inherited tag
  // If true, backward recomputes the value when it needs the value. If false, the value is saved.
  bool recompute = false;
  // The rule that decided. kNone means that no tag exists and no rule applies, so the value is
  // saved.
  TagRule rule = TagRule::kNone;
};

struct TagRemark {
  NodeId node;
  std::string_view code;
  std::string text;
};

struct Unrepeatable {
  NodeId node;
  std::string_view reason;  // the result of why_unrepeatable()
};

struct TagDecisions {
  IdMap<NodeId, TagDecision> of;
  MarkMap marks;  // the marks of the graph
  // Nodes that must be recomputed but cannot be repeated. If backward needs one of these nodes,
  // this is an error.
  std::vector<Unrepeatable> unrepeatable;
  std::vector<TagRemark> remarks;
  // Whether views are recomputed even if the memory of their base is kept. If true, only the memory
  // of the base is saved.
  bool copies_views = false;
  // Texts for the error about an unrepeatable value: the reason why backward must recompute the
  // value, and the remedy for the user.
  std::string_view wanted = "is tagged for recompute";
  std::string_view remedy = "tag it MUST_SAVE. If it has the tag PREFER_RECOMPUTE, it is saved with a remark";
};

// Returns the reason why a second run of the node would not return the same values. Examples are
// "writes its argument" and "draws random numbers from no recorded slot". Returns an empty text if
// the node can be repeated. A random operator with a recorded slot can be repeated.
std::string_view why_unrepeatable(const Graph& graph, NodeId node, EffectMap& effects);

// The place of a checkpoint region in the order of regions.
struct RegionKey {
  bool exists = false;
  bool is_explicit = false;  // identified by region id, otherwise by layer
  int64_t order = 0;
  bool operator==(const RegionKey&) const = default;
  // Whether this region comes before the other region. Regions are compared only if both are
  // identified by region id, or both by layer.
  bool is_before(const RegionKey& other) const {
    return exists && other.exists && is_explicit == other.is_explicit && order < other.order;
  }
};

// Returns the region of a node. An explicit region id takes precedence. Without an explicit id, the
// region is the layer: the first component of the module path that is a number.
RegionKey region_key(const Graph& graph, NodeId node, TagRules rules);

// Returns the first component of `module_path` that is a number. Returns -1 if no component is a
// number.
int64_t layer_of(std::string_view module_path);

// Whether a policy of an fxopt pass wrote the tag. If false, the author of the file wrote the tag.
// O(1).
bool is_policy_tag(const Graph& graph, NodeId node);

// Decides for every node by the first rule that matches the node's tag and mark. Whether a copy is
// possible depends on the place of the copy, so remat applies the rules about copies. O(nodes +
// edges).
TagDecisions decide_tags(const Graph& graph, const PhaseMap& phases, const StorageMap& storages, EffectMap& effects,
                         TagRules rules, PreferRecompute prefer = PreferRecompute::kWins);

}  // namespace fxopt
