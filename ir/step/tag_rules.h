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

// The rules that decide from tags which values are saved or recomputed. kFxopt is fxopt's ordered
// list of rules. kTorch is the behaviour of PyTorch 2.15 with the same tags. Views, getitems and
// waits do not inherit tags with kTorch. Tags of backward nodes have an effect with kTorch, but are
// ignored with kFxopt. kTorch has a checkpoint region only for nodes with an explicit region id.
// kFxopt also uses the layers of the model as regions.
enum class TagRules : uint8_t {
  kFxopt,
  kTorch,
};

// Whether the tag PREFER_RECOMPUTE wins over the save mark of a value (`ap_must_save`, see
// ir/step/marks.h).
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

// A tag rule, and the texts about the rule that `opt`, `explain` and `tags` print. The page
// cli/topics/tag-rules.md describes the rules in the same order.
struct TagRuleText {
  TagRule rule = TagRule::kNone;
  // The reason that is reported for one value, as a sentence about that value.
  std::string_view reason;
  // How the user gets the opposite decision, such as "recomputed" instead of "saved". Empty if this
  // is impossible.
  std::string_view remedy;
};

// Returns all rules except kNone, in three parts. The first rules decide from tags. These rules are
// tried in order, and the first matching rule decides. The next rules prevent a recompute that was
// decided, or describe how the recompute is done. The last rule is about merging tags.
std::span<const TagRuleText> tag_rules();
// Returns the texts of a rule. For kNone and unknown rules, returns the texts for an untagged
// value.
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
  MarkMap marks;  // the values with a save mark
  // Nodes that must be recomputed but cannot be repeated. It is an error if backward needs one of
  // these nodes.
  std::vector<Unrepeatable> unrepeatable;
  std::vector<TagRemark> remarks;
  // Whether views are recomputed even if the memory of their base is kept. If true, only the memory
  // of the base is saved.
  bool copies_views = false;
  // Texts for the error about an unrepeatable value: the reason why backward must recompute the
  // value, and the remedy for the user.
  std::string_view wanted = "is tagged for recompute";
  std::string_view remedy = "tag it MUST_SAVE, or PREFER_RECOMPUTE, which saves the value if a recompute is impossible";
};

// Returns the reason why a second execution of the node would not return the same values, such as
// "writes its argument". Returns an empty text if the node can be repeated. A random operator can
// be repeated if the file records the generator offset of its draw (is_recorded_draw()).
std::string_view why_unrepeatable(const Graph& graph, NodeId node, EffectMap& effects);

// The place of a checkpoint region in the order of regions.
struct RegionKey {
  bool exists = false;
  bool is_explicit = false;  // true if the region is identified by region id, false if by layer
  int64_t order = 0;
  bool operator==(const RegionKey&) const = default;
  // Whether this region comes before the other region. Regions are compared only if both are
  // identified by region id, or both by layer.
  bool is_before(const RegionKey& other) const {
    return exists && other.exists && is_explicit == other.is_explicit && order < other.order;
  }
};

// Returns the checkpoint region of a node. An explicit region id takes precedence. Without an
// explicit id, the region is the layer: the first component of the module path that is a number.
RegionKey region_key(const Graph& graph, NodeId node, TagRules rules);

// Returns the first component of `module_path` that is a number. Returns -1 if no component is a
// number.
int64_t layer_of(std::string_view module_path);

// Whether a policy of an fxopt pass wrote the tag. If false, the author of the file wrote the tag.
// O(1).
bool is_policy_tag(const Graph& graph, NodeId node);

// Decides for every node whether it is saved or recomputed, by the first rule that matches the
// node's tag and save mark. The rules about recomputed copies are left to the `remat` pass, because
// these rules depend on the position of a copy. O(nodes + edges).
TagDecisions decide_tags(const Graph& graph, const PhaseMap& phases, const StorageMap& storages, EffectMap& effects,
                         TagRules rules, PreferRecompute prefer = PreferRecompute::kWins);

}  // namespace fxopt
