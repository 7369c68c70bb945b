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
  std::unique_ptr<Module> module;  // contains the graph, and the step's original graphs
  const Graph* graph = nullptr;
  std::vector<StepRunRow> runs;  // empty for a step of one graph
};

// Composes the step in a module of these files. Prints the reason and returns nothing if there is
// none.
std::optional<ComposedStep> compose(Console& console, std::unique_ptr<Module> module,
                                    const std::vector<std::string>& inputs);

// The number of runs if the graphs of a module pass values to each other as one step; else 0.
size_t linked_runs(const Module& module);

// Loads files, each with a part of one step or the whole step, into one module, which is not yet
// prepared. Prints errors and returns null if that fails. Every file is verified alone.
std::unique_ptr<Module> load_parts(Console& console, const std::vector<std::string>& inputs);

// The same for files that were read and are valid: `parts`, at least one, of `inputs`.
std::unique_ptr<Module> merge_parts(Console& console, std::vector<std::unique_ptr<Module>> parts,
                                    const std::vector<std::string>& inputs);

// prepare_input() and compose() of the result of load_parts() or merge_parts(); nothing after an
// error.
std::optional<ComposedStep> import_step(Console& console, std::unique_ptr<Module> module,
                                        const std::vector<std::string>& inputs);

// "a.pb, b.pb": the name of several files in messages.
std::string shown_inputs(const std::vector<std::string>& inputs);

// The help of --step.
inline constexpr const char* kStepHelp =
    "treat the files, or the graphs of one file, as one step: forward, then backward (see `fxopt help steps`)";

}  // namespace fxopt
