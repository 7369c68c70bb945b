// fxopt tags: reports the outcome of every save or recompute tag, even if no pass carried out the
// tag.

#include "cli/report/tags.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>

#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/doubts.h"
#include "cli/files.h"
#include "cli/print/table.h"
#include "cli/step.h"
#include "core/bytes.h"
#include "core/text.h"
#include "ir/step/step.h"
#include "ir/step/tags.h"
#include "passes/pass/pass.h"

namespace fxopt {
namespace {

struct TagsFlags {
  std::vector<std::string> inputs;
  size_t top = 32;
  bool step = false;
  bool strict = false;
};

void refuse(Console& console, const std::string& shown, const std::vector<TagOutcome>& outcomes) {
  std::vector<TagOutcome> bad;
  std::copy_if(outcomes.begin(), outcomes.end(), std::back_inserter(bad), breaks_strict_tags);
  for (const OutcomesOf what : {OutcomesOf::kTags, OutcomesOf::kMarks}) {
    const auto count = std::count_if(bad.begin(), bad.end(), [what](const TagOutcome& each) {
      return each.is_mark == (what == OutcomesOf::kMarks);
    });
    if (count == 0) continue;
    console.error({ErrorCode::kTagConflict,
                   count_text(static_cast<size_t>(count), what == OutcomesOf::kTags ? "tag" : "mark") +
                       " not carried out: " + outcomes_text(bad, what),
                   "the table gives the reasons; `fxopt help verdicts` explains the words", where_in(shown)});
  }
}

void print_heading(std::ostream& out, const std::string& shown, const std::vector<TagOutcome>& outcomes) {
  const auto marks = static_cast<size_t>(
      std::count_if(outcomes.begin(), outcomes.end(), [](const TagOutcome& each) { return each.is_mark; }));
  const size_t tags = outcomes.size() - marks;
  out << shown << ": " << count_text(tags, "tag");
  if (tags > 0) out << ": " << outcomes_text(outcomes, OutcomesOf::kTags);
  if (marks > 0) out << "; " << count_text(marks, "mark") << ": " << outcomes_text(outcomes, OutcomesOf::kMarks);
  out << '\n';
}

// Prints one warning for each graph that has recompute tags or marks but no backward.
void warn_without_backward(Console& console, const std::string& shown, const std::vector<TagOutcome>& outcomes) {
  std::set<std::string> warned;
  for (const TagOutcome& each : outcomes) {
    const bool has_effect = !each.is_mark && !wants_recompute(each.tag);
    if (!each.lacks_backward || has_effect || !warned.insert(each.graph).second) continue;
    console.warning(
        kNoBackward, where_in(shown, each.graph),
        "the graph has no backward node, so recompute tags and marks cannot be judged; add the file of the backward "
        "graph, with --step");
  }
}

void list_tags(Console& console, const TagsFlags& flags, const std::string& shown, const Module& module,
               nlohmann::ordered_json& file) {
  const std::vector<TagOutcome> outcomes = audit_tags(module);
  print_heading(console.product(), printable_line(shown), outcomes);
  if (!outcomes.empty()) print_tags(console.product(), outcomes, flags.top);
  file["counts"] = nlohmann::ordered_json::object();
  for (const auto& [word, count] : count_outcomes(outcomes, OutcomesOf::kTags)) file["counts"][word] = count;
  file["marks"] = nlohmann::ordered_json::object();
  for (const auto& [word, count] : count_outcomes(outcomes, OutcomesOf::kMarks)) file["marks"][word] = count;
  file["tags"] = tags_json(outcomes);
  ModuleFacts facts(module);
  warn_of_doubts(console, shown, module, facts);
  flags.strict ? refuse(console, shown, outcomes) : warn_without_backward(console, shown, outcomes);
}

// Loads the files into one module, and checks that they form one step.
std::unique_ptr<Module> load_step(Console& console, const std::vector<std::string>& inputs) {
  std::unique_ptr<Module> module = load_parts(console, inputs);
  if (module == nullptr || !prepare_input(console, *module, inputs.front()).has_value()) return nullptr;
  const Result<Step> step = find_step(*module);
  if (step.ok()) return module;
  Error error = step.error();
  error.where.file = shown_inputs(inputs);
  console.error(error);
  return nullptr;
}

}  // namespace

CommandBody declare_tags(Options options) {
  const std::shared_ptr<TagsFlags> flags = std::make_shared<TagsFlags>();
  options.add("IN", flags->inputs, "graph files; '-' is standard input").type("IN").required();
  options.flag("--step", flags->step, kStepHelp);
  options
      .add(
          "--top", flags->top,
          "print at most N rows of the table of tags (default: 32). Nodes that differ only in the layer number share a "
          "row")
      .type("N");
  options.flag("--strict-tags", flags->strict,
               "exit with 4 in any of these cases: a save or recompute tag is ignored or dropped; a MUST_RECOMPUTE tag "
               "is overridden; the mark `ap_must_save` of a node is lost; the training step has recompute tags "
               "but no backward. `fxopt help verdicts` lists more cases. Tags that a pass wrote are not checked");
  return [flags](Console& console) {
    console.result()["files"] = nlohmann::ordered_json::array();
    if (!console.is_ok(check_inputs(flags->inputs))) return;
    const std::vector<std::string> files = flags->step ? std::vector{flags->inputs.front()} : flags->inputs;
    for_each_input(console, files, [&](size_t i, nlohmann::ordered_json& file) {
      const std::unique_ptr<Module> module =
          flags->step ? load_step(console, flags->inputs) : import_input(console, files[i]);
      if (module == nullptr) return;
      list_tags(console, *flags, flags->step ? shown_inputs(flags->inputs) : shown_input(files[i]), *module, file);
    });
  };
}

}  // namespace fxopt
