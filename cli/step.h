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

// A training step as one graph: see compose_step().
struct ComposedStep {
  std::unique_ptr<Module> module;  // contains `graph` and the step's original graphs
  const Graph* graph = nullptr;
  // The executions of the original graphs in the step. Empty if there was only one execution.
  std::vector<StepRunRow> runs;
};

// Composes the step in a module that was read from `inputs`. If the module has no step, prints the
// reason and returns nothing.
std::optional<ComposedStep> compose(Console& console, std::unique_ptr<Module> module,
                                    const std::vector<std::string>& inputs);

// Returns the number of graph executions in a step. The step consists of the graphs of `module`:
// see find_step(). Returns 0 in these cases:
// - The graphs form no step.
// - No execution takes an output of an earlier execution as an input.
size_t linked_runs(const Module& module);

// Loads files into one module. Each file has a part of one step, or the whole step. Every file is
// verified on its own. Does not call prepare() on the returned module. If loading fails, prints the
// errors and returns null.
std::unique_ptr<Module> load_parts(Console& console, const std::vector<std::string>& inputs);

// Merges modules that were read from `inputs` and are valid. `parts` must have at least one module.
// If merging fails, prints the error and returns null.
std::unique_ptr<Module> merge_parts(Console& console, std::vector<std::unique_ptr<Module>> parts,
                                    const std::vector<std::string>& inputs);

// Calls prepare_input() and compose() on the result of load_parts() or merge_parts(). Returns
// nothing after an error.
std::optional<ComposedStep> import_step(Console& console, std::unique_ptr<Module> module,
                                        const std::vector<std::string>& inputs);

// Returns the text that names several files in messages: "a.pb, b.pb".
std::string shown_inputs(const std::vector<std::string>& inputs);

// The help text of --step.
inline constexpr const char* kStepHelp =
    "treat the files, or the graphs of one file, as one training step: forward, then backward (see `fxopt help steps`)";

}  // namespace fxopt
