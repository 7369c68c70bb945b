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
  std::string region;    // its id; empty without one
  bool is_mark = false;  // `tag` is then kNone
  std::string value;     // for a mark: the name of the value in the first partition
  Tag tag = Tag::kNone;
  // the pass that wrote a tag by a policy; empty: the author of the file
  std::string written_by;
  Verdict verdict = Verdict::kNone;  // kNone: the node exists, and no pass has judged its tag
  TagRule rule = TagRule::kNone;
  std::string pass;
  // Set only by audit_tags(). No pass judged the tag; verdict and rule are remat's forecast.
  bool is_forecast = false;
  // Tagged for recompute and read by backward, but no pass has made a copy for backward to read
  // instead.
  bool is_ignored = false;
  bool awaits_copies = false;   // moot until remat runs: only remat's copies would read the value
  bool lacks_backward = false;  // its step has no backward node
};

// The outcomes of all tags and marks: those on nodes in schedule order, then those in the ledger of
// erased nodes. A copied tag (TagSource::is_copied) is not listed: its originals, in the ledger,
// have its outcome. Any other erased tag without a verdict is implied if a node replaced its node,
// else dropped. Marked values that are missing from a graph are dropped, without a name.
// O(nodes + origins).
std::vector<TagOutcome> tag_outcomes(const Module& module);

// Like tag_outcomes(), and judges unjudged tags and marks: remat's forecast, and whether copies
// exist already (by their origins, or by the name that PyTorch gives them). Judges the whole step:
// forward values by the reads of the backward graph. O(nodes + edges + origins).
std::vector<TagOutcome> audit_tags(const Module& module);

// The word for the outcome of a tag: "ignored", else the name of the verdict; "not judged" without
// one.
std::string_view outcome_word(const TagOutcome& outcome);

// True for what --strict-tags refuses:
//   a tag that is dropped, conflicting or ignored
//   a MUST_RECOMPUTE that is overridden
//   a recompute tag in a step without backward
//   a mark that is dropped, or overridden by anything but a recompute tag
// Never for a tag that a policy wrote.
bool breaks_strict_tags(const TagOutcome& outcome);

// True for a recompute tag that no pass has judged: no remat ran.
bool awaits_remat(const TagOutcome& outcome);

// Counts by word, in the order ignored, honoured, implied, moot, overridden, dropped, conflicting,
// not judged; without zeros. Counts either tags or marks.
enum class OutcomesOf { kTags, kMarks };
std::vector<std::pair<std::string, int64_t>> count_outcomes(const std::vector<TagOutcome>& outcomes, OutcomesOf what);
// "8 honoured, 4 moot".
std::string outcomes_text(const std::vector<TagOutcome>& outcomes, OutcomesOf what);
// The tag, as in MUST_SAVE, or the key of a mark.
std::string_view decision_word(const TagOutcome& outcome);

// Prints a table with similar tags in one row: same graph, tag, outcome, operator, and module
// except for layer numbers. At most `top` rows, worst outcomes first.
void print_tags(std::ostream& out, const std::vector<TagOutcome>& outcomes, size_t top);
nlohmann::ordered_json tags_json(const std::vector<TagOutcome>& outcomes);

}  // namespace fxopt
