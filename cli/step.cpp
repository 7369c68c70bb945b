#include "cli/step.h"

#include <algorithm>
#include <utility>

#include "cli/console.h"
#include "cli/files.h"
#include "ir/io/merge.h"
#include "ir/step/compose.h"
#include "ir/step/step.h"

namespace fxopt {

std::optional<ComposedStep> compose(Console& console, std::unique_ptr<Module> module,
                                    const std::vector<std::string>& inputs) {
  const Result<Step> step = find_step(*module);
  if (!step.ok()) {
    Error error = step.error();
    error.where.file = shown_inputs(inputs);
    console.error(error);
    return std::nullopt;
  }
  ComposedStep composed;
  const bool is_several = step->runs.size() > 1;
  for (size_t i = 0; is_several && i < step->runs.size(); ++i) {
    const StepRun& run = step->runs[i];
    StepRunRow row;
    row.label = run.label;
    row.graph = module->text(module->graph(run.graph).name());
    row.inputs = run.inputs.size();
    row.from_outputs = step->count(i, StepInput::Source::kOutput);
    row.by_name = static_cast<size_t>(
        std::count_if(run.inputs.begin(), run.inputs.end(), [](const StepInput& input) { return input.by_name; }));
    row.shared = step->count(i, StepInput::Source::kShared);
    row.at_begin = step->count(i, StepInput::Source::kBegin);
    row.arriving = step->count(i, StepInput::Source::kArrives);
    for (size_t output = 0; output < run.outputs.size(); ++output) {
      if (Step::is_saved(module->graph(run.graph), output) && !run.is_taken[output]) ++row.unread;
    }
    composed.runs.push_back(std::move(row));
  }
  composed.graph = &module->graph(compose_step(*module, *step));
  composed.module = std::move(module);
  return composed;
}

size_t linked_runs(const Module& module) {
  const Result<Step> step = find_step(module);
  if (!step.ok()) return 0;
  for (size_t i = 0; i < step->runs.size(); ++i) {
    if (step->count(i, StepInput::Source::kOutput) > 0) return step->runs.size();
  }
  return 0;
}

std::unique_ptr<Module> merge_parts(Console& console, std::vector<std::unique_ptr<Module>> parts,
                                    const std::vector<std::string>& inputs) {
  for (size_t i = 1; i < parts.size(); ++i) {
    if (!console.is_ok(merge_module(*parts.front(), *parts[i], shown_input(inputs[i])))) return nullptr;
  }
  return std::move(parts.front());
}

std::unique_ptr<Module> load_parts(Console& console, const std::vector<std::string>& inputs) {
  std::vector<std::unique_ptr<Module>> parts;
  for (const std::string& path : inputs) {
    parts.push_back(load_input(console, path));
    if (parts.back() == nullptr || !is_valid_input(console, *parts.back(), path)) return nullptr;
  }
  return merge_parts(console, std::move(parts), inputs);
}

std::optional<ComposedStep> import_step(Console& console, std::unique_ptr<Module> module,
                                        const std::vector<std::string>& inputs) {
  if (module == nullptr || !prepare_input(console, *module, inputs.front()).has_value()) return std::nullopt;
  return compose(console, std::move(module), inputs);
}

std::string shown_inputs(const std::vector<std::string>& inputs) {
  std::string text;
  for (const std::string& path : inputs) text += (text.empty() ? "" : ", ") + shown_input(path);
  return text;
}

}  // namespace fxopt
