#include "passes/pipeline/registry.h"

#include <algorithm>

#include "passes/clean/canonicalize.h"
#include "passes/clean/cse.h"
#include "passes/clean/dce.h"
#include "passes/clean/infer_phase.h"
#include "passes/clean/raise_getitems.h"
#include "passes/collective/alias_round_trips.h"
#include "passes/collective/bucket.h"
#include "passes/collective/compute_cap.h"
#include "passes/collective/dedup_unshards.h"
#include "passes/collective/fuse_gathers.h"
#include "passes/partition/join.h"
#include "passes/partition/partition.h"
#include "passes/pipeline/entry.h"
#include "passes/recompute/remat.h"
#include "passes/tag/fsdp_gathers.h"
#include "passes/tag/sac.h"

namespace fxopt {
namespace {

constexpr ProofRule kMarks = {ProofTerm::kMarksOnly, "", ""};
constexpr ProofRule kClaims = {ProofTerm::kClaims, "", ""};
constexpr ProofRule kAsTorch = {ProofTerm::kImitates, "compat", "torch"};

std::vector<PassInfo> make_registry() {
  std::vector<PassInfo> passes = {
      entry<alias_round_trips>("alias-round-trips", Numerics::kExact,
                               "Replace a slice of a gathered tensor by the rank's own shard.",
                               {.proof = {kClaims,
                                          {ProofTerm::kDropsCollectives, "drop-gathers", "shown"},
                                          {ProofTerm::kDropsCollectives, "drop-gathers", "always"}}}),
      entry<bucket>("bucket", Numerics::kExact, "Merge collectives into fewer, larger ones.",
                    {.proof = {kClaims, kAsTorch}}),
      entry<canonicalize>("canonicalize", Numerics::kExact,
                          "Remove aliases, identity views and views that undo each other.", {.proof = {kAsTorch}}),
      entry<compute_cap>("compute-cap", Numerics::kExact, "Interleave reduce-scatters with long runs of compute."),
      entry<cse>("cse", Numerics::kExact, "Merge nodes that compute the same value.", {.proof = {kAsTorch}}),
      entry<dce>("dce", Numerics::kExact, "Erase nodes that no output or effect depends on.",
                 {.proof = {{ProofTerm::kDropsDraws, "random", "remove"},
                            {ProofTerm::kDropsCollectives, "collectives", "remove"},
                            {ProofTerm::kDropsAssertions, "assertions", "remove"},
                            kAsTorch}}),
      entry<dedup_unshards>("dedup-unshards", Numerics::kExact,
                            "Reuse a gathered parameter instead of gathering it again.", {.proof = {kClaims}}),
      entry<fsdp_gathers>("fsdp-gathers", Numerics::kExact, "Tag FSDP all-gathers so that backward gathers again.",
                          {.needs = {OpenQuestion::kTags},
                           .ends = {{OpenQuestion::kPhases, "fsdp-gathers relies on phases"}},
                           .proof = {kMarks}}),
      entry<fuse_gathers>("fuse-gathers", Numerics::kExact,
                          "Fuse nested all-gathers over several mesh dimensions into one.",
                          {.proof = {kClaims, {ProofTerm::kDropsCollectives, "", ""}}}),
      entry<infer_phase>("infer-phase", Numerics::kExact,
                         "Mark each node as forward or backward, in a graph without phase markers.",
                         {.needs = {OpenQuestion::kPhases}, .proof = {kMarks}}),
      entry<join_pair>("join", Numerics::kExact, "Join a forward and a backward graph into a joint graph."),
      entry<partition>("partition", Numerics::kExact, "Split a joint graph into a forward and a backward graph.",
                       {.ends = {{OpenQuestion::kPhases, "partition relies on phases"},
                                 {OpenQuestion::kTags, "partition carries out the tags"}},
                        .proof = {{ProofTerm::kDropsBackward, "mode", "inference"},
                                  {ProofTerm::kDropsCollectives, "mode", "inference"},
                                  kAsTorch}}),
      entry<raise_getitems>("raise-getitems", Numerics::kExact, "Move getitems right after the node that they index."),
      entry<remat>("remat", Numerics::kExact, "Recompute in backward the values that are tagged for recompute.",
                   {.ends = {{OpenQuestion::kPhases, "remat relies on phases and writes some"},
                             {OpenQuestion::kTags, "remat carries out the tags"}},
                    .proof = {kAsTorch}}),
      entry<sac>("sac", Numerics::kExact, "Tag forward values to be saved or recomputed, by a policy.",
                 {.needs = {OpenQuestion::kTags},
                  .ends = {{OpenQuestion::kPhases, "sac relies on phases"}},
                  .proof = {kMarks}}),
  };
  std::ranges::sort(passes, {}, &PassInfo::name);
  return passes;
}

std::string list(const std::vector<std::string_view>& names) {
  std::string joined;
  for (const std::string_view name : names) joined += (joined.empty() ? "" : ", ") + std::string(name);
  return joined;
}

std::string hint_for(std::string_view given, const std::vector<std::string_view>& names, std::string_view what) {
  return suggestion(given, names, std::string(what) + ": " + list(names));
}

}  // namespace

Error unknown_option_error(std::string_view pass, std::string_view option, const std::vector<std::string_view>& names) {
  Error error{ErrorCode::kUnknownOption,
              "'" + std::string(pass) + "' has no option '" + std::string(option) + "'",
              names.empty() ? "it takes no options" : hint_for(option, names, "its options"),
              {}};
  error.where.field = option;
  return error;
}

Error bad_option_error(std::string_view pass, std::string_view option, std::string_view value, std::string_view hint,
                       const std::vector<std::string_view>& choices) {
  Error error;
  error.code = ErrorCode::kBadOptionValue;
  error.message = "'" + std::string(value) + "' is not a value of option '" + std::string(option) + "' of '" +
                  std::string(pass) + "'";
  error.hint = choices.empty() ? std::string(hint) : hint_for(value, choices, "choices");
  error.where.field = option;
  return error;
}

std::vector<std::string_view> option_parts(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::string_view part : split_list(text)) {
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

std::string order_conflict(const PassInfo& earlier, const PassInfo& later) {
  for (const PassRules::End& end : earlier.rules.ends) {
    if (std::ranges::count(later.rules.needs, end.question) == 0) continue;
    return std::string("the later pass writes ") + (end.question == OpenQuestion::kTags ? "tags" : "phases") +
           ", but " + std::string(end.why);
  }
  return std::string();
}

const std::vector<PassInfo>& pass_registry() {
  static const std::vector<PassInfo> kRegistry = make_registry();
  return kRegistry;
}

const PassInfo* find_pass(std::string_view name) {
  const std::vector<PassInfo>& passes = pass_registry();
  const auto found = std::ranges::lower_bound(passes, name, {}, &PassInfo::name);
  return found != passes.end() && found->name == name ? &*found : nullptr;
}

}  // namespace fxopt
