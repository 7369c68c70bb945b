#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "ir/graph/module.h"

namespace fxopt {

// The origin of an input of a run.
struct StepInput {
  enum class Source : uint8_t {
    kOutput,  // an output of an earlier run
    // The same input of the step as an earlier run's: a parameter, a buffer, optimizer state, a
    // constant.
    kShared,
    kBegin,   // an input of the step that exists from its beginning
    kArrives  // an input that arrives when the run begins: a tangent, or data that a stage receives
  };
  Source source = Source::kBegin;
  size_t run = 0;        // kOutput, kShared
  size_t place = 0;      // the leaf of that run's output, or its placeholder
  bool by_name = false;  // kOutput: found by name, not recorded in the file
};

// One run of a graph inside a step.
struct StepRun {
  GraphId graph;
  std::string label;  // "forward", "backward", "stage0[1]": unique in the step
  std::vector<NodeId> placeholders;
  std::vector<NodeId> outputs;    // the leaves of the output; invalid: not a node
  std::vector<StepInput> inputs;  // one for each placeholder
  std::vector<bool> is_taken;     // whether a later run takes the output
};

// A training step: graphs in the order they run. It includes the caller's work between two runs:
// see compose_step().
struct Step {
  std::vector<StepRun> runs;
  bool is_given = false;  // by the module's invocations; false: derived from the graphs' kinds

  // Whether leaf `output` of a graph exists for backward alone: by its role, else by its place
  // after the forward outputs.
  static bool is_saved(const Graph& graph, size_t output);
  // Whether only the later run that takes the output sees it: the output is saved, or neither its
  // role nor the number of forward outputs is recorded.
  static bool is_for_later_run(const Graph& graph, size_t output);

  // The number of inputs of run `i` with that source.
  size_t count(size_t i, StepInput::Source source) const;
};

// The step that a module holds: its invocations, or else each top-level graph once, forward before
// backward before optimizer, and otherwise in the module's order. Each input of a run is the
// first of these that exists:
//
//   - the source in an invocation's binding: an output of an earlier run, or an input of the step
//   - for a saved value, the forward output it was saved from (InputSpec::saved_from_output), else
//     the forward output of its name
//   - for a parameter, buffer, optimizer state or constant, the input of the same name of an
//     earlier run
//   - for an input of the caller, the forward input of its name that forward saves
//   - an input of the step
//
// "Forward" is the one earlier run of a forward graph, of the same stage and microbatch where these
// are known. Fails with kBadStep if
//   - an invocation names no graph, or no invocation runs a graph
//   - a binding joins two types, names no earlier output, or is the second of an input
//   - several forward runs may be meant, or several forward graphs and a backward graph have no
//     invocations
//   - no forward output is the saved value, or, with several runs, no forward graph runs before it
//
// O(nodes + inputs + outputs).
Result<Step> find_step(const Module& module);

// Writes the step into the module: invocations with a binding for each input that is an output of
// an earlier run. The file then records bindings that only names showed, whatever passes do to
// names. O(inputs).
void record_step(Module& module, const Step& step);

}  // namespace fxopt
