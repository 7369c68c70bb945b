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
    kOutput,  // the input is an output of an earlier run
    // The input is a parameter, a buffer, optimizer state or a constant that the caller also passes
    // to an earlier run.
    kShared,
    kBegin,  // the input comes from the caller and exists when the step begins
    // The input comes from the caller and arrives when the run begins. Examples are a tangent, and
    // data that a pipeline stage receives.
    kArrives
  };
  Source source = Source::kBegin;
  size_t run = 0;    // for kOutput and kShared: index of the earlier run
  size_t place = 0;  // index of the output leaf or of the placeholder in the earlier run
  // For kOutput: true if find_step() chose the output because the output and the input have the
  // same name. False if the file records the output, in a binding or in
  // InputSpec::saved_from_output.
  bool by_name = false;
};

// One execution of a graph in a step.
struct StepRun {
  GraphId graph;
  std::string label;  // "forward", "backward", "stage0[1]"; unique in the step
  std::vector<NodeId> placeholders;
  // The leaves of the graph's output. A leaf that is not a node has an invalid id.
  std::vector<NodeId> outputs;
  std::vector<StepInput> inputs;  // one entry for each placeholder
  std::vector<bool> is_taken;     // for each output, whether a later run takes the output
};

// A training step: graphs in the order in which they run. The step includes the caller's work
// between two runs, see compose_step().
struct Step {
  std::vector<StepRun> runs;
  // Whether the module's invocations define the step. If false, the kinds of the graphs define the
  // step.
  bool is_given = false;

  // Whether leaf `output` of a graph is a value that is saved for backward. The recorded role of
  // the leaf decides. If no role is recorded, all leaves after the forward outputs count as saved
  // values. The result is false if neither the role nor Graph::num_forward_outputs is recorded.
  static bool is_saved(const Graph& graph, size_t output);
  // Call this function only for an output that a later run takes (StepRun::is_taken). Returns true
  // if the output is only for later runs, and false if the step may also return the output to its
  // caller. The result is true in these cases:
  // - is_saved() is true for the output.
  // - Neither the output's role nor the number of forward outputs is recorded.
  static bool is_for_later_run(const Graph& graph, size_t output);

  // Returns the number of inputs of run `i` whose source is `source`.
  size_t count(size_t i, StepInput::Source source) const;
};

// Returns the step that a module contains. The module's invocations are the runs of the step.
// Without invocations, each top-level graph runs once. Forward graphs come before backward graphs,
// and backward graphs come before optimizer graphs. Graphs of the same kind keep the order of the
// module. Each input of a run has the first of these sources that exists:
//
//   - the source in a binding of the invocation: an output of an earlier run, or an input of the
//     step
//   - for a saved value: the forward output from which the value was saved
//     (InputSpec::saved_from_output)
//   - for a saved value: the forward output of the same name
//   - for a parameter, buffer, optimizer state or constant: the input of the same name of an
//     earlier run
//   - for an input of the caller: the forward input of the same name, if forward saves that input
//   - an input of the step
//
// If an input of a backward run has no recorded role, but forward has a matching output, the input
// is treated as a saved value.
//
// In this list, "forward" is an earlier run of a forward graph with the same stage and microbatch.
// Two unknown stages count as the same stage, and likewise two unknown microbatches. If no such run
// exists, an unknown stage or microbatch matches any other. If several runs match, they are sorted
// by stage, then by microbatch (unknown numbers first), then by their order in the step. "forward"
// is the last of these runs. Exception: if several runs match, find_step() chooses no run for an
// input with the recorded role of a saved value. This input needs a binding.
//
// Fails with kBadStep in these cases:
//   - An invocation refers to a graph that the module lacks, or a top-level graph has no
//     invocation.
//   - An input has two bindings.
//   - A binding refers to an output that no earlier run has, or to an output that is not a node.
//   - An output and the input that takes this output differ in kind, dtype, device, number of
//     dimensions or a static size.
//   - An input with the role of a saved value has no binding, and several forward runs match.
//   - The module has a backward graph and several forward graphs, but no invocations.
//   - No output of forward is the saved value that a backward run takes.
//   - An input with the role of a saved value has no binding, and no forward run matches.
//     Exception: in a step with a single run, saved values are inputs of the step.
//
// O(nodes + inputs + outputs).
Result<Step> find_step(const Module& module);

// Writes the step into the module as invocations. The invocations have a binding for each input
// that is an output of an earlier run. A binding contains only numbers: the index of the input, of
// the earlier run, and of the output. A binding therefore remains valid if a pass renames the input
// or the output. Without a binding, find_step() may look for an output with the name of the input
// (StepInput::by_name), and finds no such output after the renaming. O(inputs).
void record_step(Module& module, const Step& step);

}  // namespace fxopt
