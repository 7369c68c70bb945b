#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "ir/graph/module.h"

namespace fxopt {

// The outcome of one recompute tag, such as MUST_SAVE, or of one save mark. The outcome says
// whether passes followed the tag. A save mark is the metadata key `ap_must_save` of a node. It
// records that an earlier compilation saved the node's value: see ir/step/marks.h.
struct TagOutcome {
  std::string graph;
  std::string node;
  std::string target;
  std::string module_path;
  std::string region;    // id of the node's checkpoint region; empty if it has none
  bool is_mark = false;  // true for a save mark; `tag` is then kNone
  std::string value;     // for a save mark: the name of the value in the earlier compilation
  Tag tag = Tag::kNone;
  // The pass whose recompute policy wrote the tag. Empty if the author of the graph wrote the tag.
  std::string written_by;
  Verdict verdict = Verdict::kNone;  // kNone: the node exists, and no pass has judged its tag
  TagRule rule = TagRule::kNone;
  std::string pass;
  // Set only by audit_tags(). If true, no pass has judged the tag. `verdict` and `rule` then
  // predict the decision that the pass `remat` would make.
  bool is_forecast = false;
  // True if the value is tagged for recompute, but backward still reads the value, because no pass
  // has made a copy of it.
  bool is_ignored = false;
  // Set only by audit_tags(), for a recompute tag that no pass has judged. True if backward does
  // not read the value now, but would use the value after the pass `remat`. `remat` would recompute
  // other nodes in backward, and the recomputed copies of these nodes would need the value.
  bool awaits_copies = false;
  // Set only by audit_tags(). True if the step has no backward node and `graph` is not an inference
  // graph.
  bool lacks_backward = false;
};

// Returns the outcomes of all tags and save marks. Tags and marks on nodes come first, in schedule
// order. Tags and marks of erased nodes follow. Module::erased, the ledger, records the erased
// nodes.
//
// A node that replaces tagged nodes may get a copy of their tag: see TagSource::is_copied. The list
// omits the copy, and contains the original tag of each replaced node. If no pass judged an
// original tag, the list shows the original tag with the outcome of the copy. If `partition` writes
// MUST_SAVE over a recompute tag (mark-saved=true), the list omits MUST_SAVE. The list then
// contains the recompute tag, with the recompute tag's own outcome.
//
// An erased node may have a tag that was not copied and that no pass has judged. If another node
// replaced the erased node, this tag is "implied". If no node replaced the erased node, this tag is
// "dropped". A value with a save mark may be missing from a graph, without a record in the ledger.
// The mark is then "dropped", and TagOutcome::node is empty. O(nodes + origins).
std::vector<TagOutcome> tag_outcomes(const Module& module);

// Returns the outcomes of tag_outcomes(). If no pass has judged a tag or save mark, the verdict is
// predicted: it is the verdict that the pass `remat` would give. If a value is tagged for recompute
// and a copy of the value already exists, the tag is "honoured". Copies are found by their origins,
// or by the names that PyTorch gives them. The forecast covers the whole step, including reads of
// forward values by a separate backward graph. O(nodes + edges + origins).
std::vector<TagOutcome> audit_tags(const Module& module);

// Returns the word for an outcome: "ignored", "not judged", or the name of the verdict.
std::string_view outcome_word(const TagOutcome& outcome);

// True if --strict-tags refuses the outcome. --strict-tags refuses:
// - a tag that is dropped, conflicting or ignored
// - a MUST_RECOMPUTE that is overridden. Exception: the value is an output of a recorded checkpoint
//   region (rule region_boundary). PyTorch's partitioners also save these outputs.
// - a recompute tag in a step without backward
// - a save mark that is dropped, or overridden by anything except a recompute tag
//
// Returns false for every tag that a policy wrote.
bool breaks_strict_tags(const TagOutcome& outcome);

// True for a recompute tag that no pass has judged, because remat did not run.
bool awaits_remat(const TagOutcome& outcome);

// Selects the outcomes that count_outcomes() counts: the outcomes of tags, or the outcomes of save
// marks. count_outcomes() returns each outcome_word() with its number of outcomes. Words with a
// count of 0 are omitted. The words are returned in this order:
//
//   "ignored", "honoured", "implied", "moot", "overridden", "dropped", "conflicting", "not judged"
enum class OutcomesOf { kTags, kMarks };
std::vector<std::pair<std::string, int64_t>> count_outcomes(const std::vector<TagOutcome>& outcomes, OutcomesOf what);
// Returns the counts of the outcomes as text: "8 honoured, 4 moot (not used in backward)".
std::string outcomes_text(const std::vector<TagOutcome>& outcomes, OutcomesOf what);
// Returns the name of the outcome's tag, such as MUST_SAVE. Returns "ap_must_save" for a save mark.
std::string_view decision_word(const TagOutcome& outcome);

// Prints a table of tags and save marks. Nodes share a row if their graph, operator, tag, outcome
// and reason are equal. Their module paths may differ in layer numbers. Prints at most `top` rows.
// The worst outcomes come first.
void print_tags(std::ostream& out, const std::vector<TagOutcome>& outcomes, size_t top);
nlohmann::ordered_json tags_json(const std::vector<TagOutcome>& outcomes);

}  // namespace fxopt
