#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "ir/graph/graph.h"
#include "ir/step/marks.h"
#include "passes/pass/pass.h"

// What all taggers have in common: how strong their tags are, and what they do with the marks of a first partition.

namespace fxopt {

enum class TagStrength : uint8_t {
  kMust,
  kPrefer,
};
template <>
struct EnumNames<TagStrength> {
  static constexpr EnumName<TagStrength> kAll[] = {{TagStrength::kMust, "must"}, {TagStrength::kPrefer, "prefer"}};
};

enum class MarkedValues : uint8_t {
  kKeep,
  kOverride,
};
template <>
struct EnumNames<MarkedValues> {
  static constexpr EnumName<MarkedValues> kAll[] = {{MarkedValues::kKeep, "keep"},
                                                    {MarkedValues::kOverride, "override"}};
};

inline constexpr std::string_view kStrengthHelp =
    "must: the policy writes MUST_SAVE and MUST_RECOMPUTE where it is certain; prefer: PREFER_SAVE and "
    "PREFER_RECOMPUTE in their place.";
inline constexpr std::string_view kMarkedHelp =
    "What becomes of values that a first partition marked (ap_must_save). keep: they stay untagged, with a remark; "
    "override: they are tagged like "
    "others, and the option prefer-recompute of partition decides; needs strength=prefer.";

// kBadOptionValue where the two do not go together.
std::optional<Error> check_policy(std::string_view pass, TagStrength strength, MarkedValues marked);

// The tag of that strength. O(1).
Tag with_strength(Tag tag, TagStrength strength);

// Writes tags for a policy.
class PolicyTagger {
 public:
  PolicyTagger(Graph& graph, const PhaseMap& phases, MarkedValues marked, std::string_view pass, PassResult& result);

  // Whether the node is a marked value that stays untagged.
  bool is_kept(NodeId node) const { return keeps_ && marks_.is_saved.get(node); }
  // Tags the node; one that is_kept() gets a remark, code `marked`, in place of the tag. `is_policy`: false for a node that the caller
  // selected by name. Counters: tagged-recompute, tagged-save. Gives whether the node is tagged. O(1).
  bool tag(NodeId node, Tag tag, bool is_policy = true);
  // Warns, code marks-kept, where any node stayed untagged. Once, at the end.
  void finish();

 private:
  Graph& graph_;
  PassResult& result_;
  StringId pass_;
  MarkMap marks_;
  bool keeps_;
  int64_t num_kept_ = 0;
  NodeId first_;
};

}  // namespace fxopt
