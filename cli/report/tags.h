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

// What became of one tag, or of one mark of a first partition (ir/step/marks.h).
struct TagOutcome {
  std::string graph;
  std::string node;
  std::string target;
  std::string module_path;
  std::string region;    // its id; empty without one
  bool is_mark = false;  // a mark: `tag` is none then
  std::string value;     // of a mark: the name of the value in the first partition
  Tag tag = Tag::kNone;
  std::string written_by;            // of a tag: the pass that wrote it by a policy; empty: the author of the file
  Verdict verdict = Verdict::kNone;  // kNone: the node is there, and no pass has judged its tag
  TagRule rule = TagRule::kNone;
  std::string pass;
  // Of audit_tags() alone. No pass has judged the tag: verdict and rule are what remat would write.
  bool is_forecast = false;
  // Tagged for recompute, read by backward, and no pass has made a copy that backward reads in its place.
  bool is_ignored = false;
  bool awaits_copies = false;   // moot so far: backward does not read the value, and copies that remat would make do
  bool lacks_backward = false;  // no node of its step is backward
};

// Of all tags and marks: those of the graphs in schedule order, each node's tag before its mark, then those of the ledger of erased nodes.
// A tag that a node has taken over from others (TagSource::is_copied) is none of its own: the others, in the ledger, have its outcome. Any
// other erased tag without a verdict is implied when another node took its place, else dropped by the pass that erased it.
// O(nodes + origins).
std::vector<TagOutcome> tag_outcomes(const Module& module);

// The same, with the tags and marks that no pass has judged looked at: what remat would do, and whether a pass has carried them out
// (copies are known by their origins, or by the name that PyTorch gives them). The step of the module is judged: a value of a forward
// graph by what its backward graph reads. O(nodes + edges + origins).
std::vector<TagOutcome> audit_tags(const Module& module);

// The word for what became of a tag: "ignored", else the name of the verdict; "not judged" without one.
std::string_view outcome_word(const TagOutcome& outcome);

// True for what --strict-tags refuses: a tag dropped, conflicting or ignored, a MUST_RECOMPUTE overridden, a tag for recompute where nothing
// is backward, a mark dropped, or overridden by anything but the author's tag. Never for a tag that a policy wrote.
bool breaks_strict_tags(const TagOutcome& outcome);

// True for a recompute tag that no pass has judged: no remat ran.
bool awaits_remat(const TagOutcome& outcome);

// Counts by word, in the order ignored, honoured, implied, moot, overridden, dropped, conflicting, not judged; without
// zeros. Of the tags, or of the marks.
enum class OutcomesOf { kTags, kMarks };
std::vector<std::pair<std::string, int64_t>> count_outcomes(const std::vector<TagOutcome>& outcomes, OutcomesOf what);
// "8 honoured, 4 moot".
std::string outcomes_text(const std::vector<TagOutcome>& outcomes, OutcomesOf what);
// The tag, as in MUST_SAVE, or the key of a mark.
std::string_view decision_word(const TagOutcome& outcome);

// A table with alike tags in one row: one graph, tag, outcome, operator, and module but for layers' numbers. At most
// `top` rows, worst outcomes first.
void print_tags(std::ostream& out, const std::vector<TagOutcome>& outcomes, size_t top);
nlohmann::ordered_json tags_json(const std::vector<TagOutcome>& outcomes);

}  // namespace fxopt
