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

// The outcome of one tag, or of one mark of a first partition (ir/step/marks.h).
struct TagOutcome {
  std::string graph;
  std::string node;
  std::string target;
  std::string module_path;
  std::string region;    // id of the node's region; empty if it has none
  bool is_mark = false;  // true for a mark; `tag` is then kNone
  std::string value;     // for a mark: the name of the value in the first partition
  Tag tag = Tag::kNone;
  // The pass that wrote the tag by a policy. Empty if the author of the file wrote the tag.
  std::string written_by;
  Verdict verdict = Verdict::kNone;  // kNone if the node exists and no pass has judged its tag
  TagRule rule = TagRule::kNone;
  std::string pass;
  // Set only by audit_tags(). If true, no pass has judged the tag, and `verdict` and `rule` are
  // forecasts of remat.
  bool is_forecast = false;
  // True if the value is tagged for recompute, but backward still reads the value, because no pass
  // has made a copy of it.
  bool is_ignored = false;
  // Moot until remat runs, because only copies made by remat would read the value.
  bool awaits_copies = false;
  bool lacks_backward = false;  // the step has no backward node
};

// Returns the outcomes of all tags and marks. Tags and marks on nodes come first, in schedule
// order. Tags and marks in the ledger of erased nodes follow.
//
// A copied tag is not listed: see TagSource::is_copied. Instead, the originals of this tag in the
// ledger get the outcome of the copied tag. Any other erased tag without a verdict is implied if
// another node replaced the tagged node. If no node replaced the tagged node, the tag is dropped. A
// marked value that is missing from a graph is dropped and has no name. O(nodes + origins).
std::vector<TagOutcome> tag_outcomes(const Module& module);

// Returns the same outcomes as tag_outcomes(), except that it judges the tags and marks that no
// pass has judged. The verdicts of these tags and marks are forecasts of remat. If a value is
// tagged for recompute and a copy of the value already exists, the tag is honoured. Copies are
// found by their origins, or by the names that PyTorch gives them. The forecast covers the whole
// step. If the backward graph reads a forward value, the forecast includes this read. O(nodes +
// edges + origins).
std::vector<TagOutcome> audit_tags(const Module& module);

// Returns the word for an outcome: "ignored", "not judged", or the name of the verdict.
std::string_view outcome_word(const TagOutcome& outcome);

// True if --strict-tags refuses the outcome. --strict-tags refuses:
// - a tag that is dropped, conflicting or ignored
// - a MUST_RECOMPUTE that is overridden
// - a recompute tag in a step without backward
// - a mark that is dropped, or overridden by anything except a recompute tag
//
// It never refuses a tag that a policy wrote.
bool breaks_strict_tags(const TagOutcome& outcome);

// True for a recompute tag that no pass has judged, because remat did not run.
bool awaits_remat(const TagOutcome& outcome);

// Counts outcomes by word, either those of tags or those of marks. The order of the words is
// ignored, honoured, implied, moot, overridden, dropped, conflicting, not judged. Words with a
// count of 0 are omitted.
enum class OutcomesOf { kTags, kMarks };
std::vector<std::pair<std::string, int64_t>> count_outcomes(const std::vector<TagOutcome>& outcomes, OutcomesOf what);
// Returns the counts of the outcomes as text: "8 honoured, 4 moot".
std::string outcomes_text(const std::vector<TagOutcome>& outcomes, OutcomesOf what);
// Returns the name of a tag, such as MUST_SAVE, or the key of a mark.
std::string_view decision_word(const TagOutcome& outcome);

// Prints a table in which similar tags share a row. Similar tags have the same graph, tag, outcome,
// reason and operator. Their modules differ at most in layer numbers. Prints at most `top` rows.
// The worst outcomes come first.
void print_tags(std::ostream& out, const std::vector<TagOutcome>& outcomes, size_t top);
nlohmann::ordered_json tags_json(const std::vector<TagOutcome>& outcomes);

}  // namespace fxopt
