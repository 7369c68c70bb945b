#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "ir/graph/module.h"

namespace fxopt {

// Where a run of a graph has an input from.
struct StepInput {
  enum class Source : uint8_t {
    kOutput,  // an output of an earlier run
    kShared,  // the same input of the step as one of an earlier run: a parameter, a buffer, optimizer state, a constant
    kBegin,   // an input of the step that is there when it begins
    kArrives  // one that comes as the run begins: a tangent, what a stage receives
  };
  Source source = Source::kBegin;
  size_t run = 0;        // kOutput, kShared
  size_t place = 0;      // the leaf of that run's output, or its placeholder
  bool by_name = false;  // kOutput: the file does not say so, the names do
};

// One run of a graph inside a step.
struct StepRun {
  GraphId graph;
  std::string label;  // "forward", "backward", "stage0[1]": no other run has it
  std::vector<NodeId> placeholders;
  std::vector<NodeId> outputs;    // the leaves of the output, invalid where one is no node
  std::vector<StepInput> inputs;  // one for each placeholder
  std::vector<bool> is_taken;     // the outputs that a later run takes
};

// A training step: graphs in the order they run. What the caller does between two runs is in it, too: see
// compose_step().
struct Step {
  std::vector<StepRun> runs;
  bool is_given = false;  // by the module's invocations; false: by the kinds of its graphs

  // Whether leaf `output` of a graph is there for backward alone: by its role, by its place after the forward outputs.
  static bool is_saved(const Graph& graph, size_t output);
  // Whether nobody but the later run that takes the output sees it: it is saved, or nothing tells what it is.
  static bool is_for_later_run(const Graph& graph, size_t output);

  // Inputs of run `i` from that source.
  size_t count(size_t i, StepInput::Source source) const;
};

// The step that a module holds: its invocations, or else its top-level graphs, each once, forward before backward before
// optimizer, as they stand in the module within these. The inputs of a run are, in this order, what a binding says;
// for a saved value the forward output it was saved from (InputSpec::saved_from_output), else the output of that name; for an input
// of the caller the input of forward of that name that forward saves; a parameter, buffer, optimizer state or constant of the name of one of an earlier run; an input of the step. "The
// forward" is the one run before it of a forward graph, of the same stage and microbatch where these are known.
// Errors: kBadStep: a binding of another type, or a second one; a graph that no invocation runs; several forward runs
// that may be meant; a saved value that no output is, or of no forward graph, where there are several runs; several forward and backward graphs
// without invocations. O(nodes + inputs + outputs).
Result<Step> find_step(const Module& module);

// Writes the step into the module, as invocations with a binding for each input that is an output of an earlier run: what
// names alone told is then told by the file, whatever passes do to names. O(inputs).
void record_step(Module& module, const Step& step);

}  // namespace fxopt
