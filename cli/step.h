#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/report/memory/report.h"
#include "core/result.h"
#include "ir/graph/module.h"

namespace fxopt {

class Console;

// A step as one graph: see compose_step().
struct ComposedStep {
  std::unique_ptr<Module> module;  // that the graph is in; graphs of the step, too
  const Graph* graph = nullptr;
  std::vector<StepRunRow> runs;  // empty for a step of one graph
};

// Composes the step that a module of these files holds; nothing when it holds none, after printing why.
std::optional<ComposedStep> compose(Console& console, std::unique_ptr<Module> module,
                                    const std::vector<std::string>& inputs);

// Loads files, each with a part of one step or all of it, into one module that is not yet prepared, and prints what is
// wrong; null when there was an error. Every file is verified alone.
std::unique_ptr<Module> load_parts(Console& console, const std::vector<std::string>& inputs);

// The same for files that are read already, and valid: `parts`, at least one, of `inputs`.
std::unique_ptr<Module> merge_parts(Console& console, std::vector<std::unique_ptr<Module>> parts,
                                    const std::vector<std::string>& inputs);

// prepare_input() and compose() of what load_parts() or merge_parts() gave; nothing when there was an error.
std::optional<ComposedStep> import_step(Console& console, std::unique_ptr<Module> module,
                                        const std::vector<std::string>& inputs);

// "a.pb, b.pb", for what is of all of them.
std::string shown_inputs(const std::vector<std::string>& inputs);

// "these are a step": of the same files, the flag that says so.
inline constexpr const char* kStepHelp =
    "the files, or the graphs of one file, are one step: forward, then backward (see `fxopt help steps`)";

}  // namespace fxopt
