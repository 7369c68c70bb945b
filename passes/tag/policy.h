#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "ir/graph/graph.h"
#include "ir/step/marks.h"
#include "passes/pass/pass.h"

// Code that all taggers share: the strength of tags, and the treatment of marked values
// (ir/step/marks.h).

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
    "must: write MUST_SAVE and MUST_RECOMPUTE where the policy is certain; prefer: write PREFER_SAVE and "
    "PREFER_RECOMPUTE instead.";
inline constexpr std::string_view kMarkedHelp =
    "How to treat values that a first partition marked (ap_must_save). keep: leave them untagged, and report them; "
    "override: tag them like others, so that PREFER_RECOMPUTE wins over the mark (needs strength=prefer).";

// Returns kBadOptionValue if marked=override is given without strength=prefer.
std::optional<Error> check_policy(std::string_view pass, TagStrength strength, MarkedValues marked);

// Returns the tag with the given strength. O(1).
Tag with_strength(Tag tag, TagStrength strength);

// Writes tags for a policy.
class PolicyTagger {
 public:
  PolicyTagger(Graph& graph, const PhaseMap& phases, MarkedValues marked, std::string_view pass, PassResult& result);

  // Whether the node stays untagged because it is marked and the option is marked=keep.
  bool is_kept(NodeId node) const { return keeps_ && marks_.is_saved.get(node); }
  // Tags the node, and returns true if the node was tagged. If is_kept() is true for the node, the
  // node gets the remark `marked` instead of the tag. `is_policy` is false for a node that the
  // caller selected by name. Counters: tagged-recompute, tagged-save. O(1).
  bool tag(NodeId node, Tag tag, bool is_policy = true);
  // Writes one remark (marks-kept) if any marked node was left untagged. Call finish() after the
  // last call of tag().
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
