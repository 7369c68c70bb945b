#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "ir/graph/graph.h"
#include "ir/step/marks.h"
#include "passes/pass/pass.h"

// Code that the passes `sac` and `fsdp-gathers` share: the strength of tags, and the treatment of
// values with the save mark `ap_must_save` (ir/step/marks.h).

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
    "Strength of the tags that the policy chooses. prefer: PREFER_SAVE and PREFER_RECOMPUTE; must: MUST_SAVE and "
    "MUST_RECOMPUTE. With must, calls for which the policy only prefers a recompute still get PREFER_RECOMPUTE.";
inline constexpr std::string_view kMarkedHelp =
    "How to treat values with the mark `ap_must_save`, which an earlier partition wrote. keep: leave the marked values "
    "untagged, and report them; override: tag the marked values like all other values. The value override needs "
    "strength=prefer, because PREFER_RECOMPUTE is the only tag of a policy that can win over a mark.";

// Returns kBadOptionValue if marked=override is given without strength=prefer.
std::optional<Error> check_policy(std::string_view pass, TagStrength strength, MarkedValues marked);

// Returns the tag with the given strength. O(1).
Tag with_strength(Tag tag, TagStrength strength);

class PolicyTagger {
 public:
  PolicyTagger(Graph& graph, const PhaseMap& phases, MarkedValues marked, std::string_view pass, PassResult& result);

  // True if the node stays untagged, because it has a save mark and the option `marked` has the
  // value `keep`.
  bool is_kept(NodeId node) const { return keeps_ && marks_.is_saved.get(node); }
  // Tags the node, and returns true if the node was tagged. If is_kept() is true for the node, the
  // node gets the remark `marked` instead of the tag. `is_policy` is false for a node that the user
  // selected by an option such as `save`. Counters: tagged-recompute, tagged-save. O(1).
  bool tag(NodeId node, Tag tag, bool is_policy = true);
  // If a node with a save mark was left untagged, writes one remark (marks-kept). Call finish()
  // after the last call of tag().
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
