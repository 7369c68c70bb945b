// fxopt tags: what became of every save and recompute tag, including those that no pass carried out.

#include "cli/report/tags.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/files.h"
#include "cli/print/json.h"
#include "cli/print/table.h"
#include "core/text.h"
#include "ir/step/tags.h"
#include "passes/pass/pass.h"

namespace fxopt {
namespace {

struct TagsFlags {
  std::vector<std::string> inputs;
  size_t top = 32;
  bool strict = false;
};

void refuse(Console& console, const std::string& path, const std::vector<TagOutcome>& outcomes) {
  if (std::none_of(outcomes.begin(), outcomes.end(), breaks_strict_tags)) return;
  std::vector<TagOutcome> bad;
  std::copy_if(outcomes.begin(), outcomes.end(), std::back_inserter(bad), breaks_strict_tags);
  Error error{ErrorCode::kTagConflict,
              count_text(bad.size(), "tag") + " not carried out: " + outcomes_text(bad),
              "the table says why; `fxopt help verdicts` explains the words",
              {}};
  error.where.file = shown_input(path);
  console.error(error);
}

void list_tags(Console& console, const TagsFlags& flags, const std::string& path, nlohmann::ordered_json& file) {
  const std::unique_ptr<Module> module = import_input(console, path);
  if (module == nullptr) return;
  const std::vector<TagOutcome> outcomes = audit_tags(*module);
  std::string warned;
  std::ostream& out = console.product();
  out << printable_line(shown_input(path)) << ": " << count_text(outcomes.size(), "tag");
  if (!outcomes.empty()) {
    out << ": " << outcomes_text(outcomes) << '\n';
    print_tags(out, outcomes, flags.top);
  } else {
    out << '\n';
  }
  file["counts"] = nlohmann::ordered_json::object();
  for (const auto& [word, count] : count_outcomes(outcomes)) file["counts"][word] = count;
  file["tags"] = tags_json(outcomes);
  if (flags.strict) return refuse(console, path, outcomes);
  for (const TagOutcome& each : outcomes) {
    if (!each.lacks_backward || !wants_recompute(each.tag) || each.graph == warned) continue;
    warned = each.graph;
    Where where;
    where.file = shown_input(path);
    where.graph = each.graph;
    console.warning(kNoBackward, where, "tags for recompute, and no node is backward");
  }
}

}  // namespace

CommandBody declare_tags(CLI::App& app) {
  const std::shared_ptr<TagsFlags> flags = std::make_shared<TagsFlags>();
  app.add_option("IN", flags->inputs, "graph files; '-' is standard input")->type_name("IN")->required();
  app.add_option("--top", flags->top, "print at most N rows; identical layers share a row (default: 32)")
      ->type_name("N");
  app.add_flag(
      "--strict-tags", flags->strict,
      "exit with 4 when a tag is ignored, dropped or conflicting, a MUST_RECOMPUTE is overridden, or the graph has "
      "recompute tags and no backward");
  return [flags](Console& console) {
    console.result()["files"] = nlohmann::ordered_json::array();
    const Status inputs = check_inputs(flags->inputs);
    if (!inputs.ok()) return console.error(inputs.error());
    for_each_input(console, flags->inputs,
                   [&](size_t i, nlohmann::ordered_json& file) { list_tags(console, *flags, flags->inputs[i], file); });
  };
}

}  // namespace fxopt
