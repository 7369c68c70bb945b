// One joint graph out of a forward and a backward one.
//
//   graph @forward {kind=forward}                 graph @joint {kind=joint}
//     %x = placeholder()                            %x = placeholder()
//     %a = exp(%x)                                  %d = placeholder() {role=tangent}
//     return (%a, %a)                       =>      %a = exp(%x)
//   graph @backward {kind=backward}                 %g = mul(%d, %a)
//     %a = placeholder() {saved_from_output=1}      return (%a, %g)
//     %d = placeholder() {role=tangent}
//     %g = mul(%d, %a)
//     return (%g,)
//
// What backward takes from forward is what find_step() says: by bindings, by saved_from_output, by name.

#include "passes/partition/join.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ir/step/phases.h"
#include "ir/step/repeat.h"
#include "ir/step/step.h"
#include "ir/values/values.h"
#include "passes/partition/transplant.h"

namespace fxopt {
namespace {

using Source = StepInput::Source;

Error refused(const Graph& graph, NodeId node, std::string message, std::string hint) {
  Error error{ErrorCode::kUnsupportedGraph, std::move(message), std::move(hint), {}};
  error.where.graph = graph.module().text(graph.name());
  error.where.node = graph.name_of(node.is_valid() ? node : graph.output());
  return error;
}

bool is_pair(const Module& module, const Step& step) {
  return step.runs.size() == 2 && module.graph(step.runs[0].graph).kind == GraphKind::kForward &&
         module.graph(step.runs[1].graph).kind == GraphKind::kBackward;
}

// What backward takes of forward.
std::vector<NodeId> taken(const Step& step) {
  std::vector<NodeId> nodes;
  for (const StepInput& input : step.runs[1].inputs) {
    if (input.source == Source::kOutput) nodes.push_back(step.runs[0].outputs[input.place]);
    if (input.source == Source::kShared) nodes.push_back(step.runs[0].placeholders[input.place]);
  }
  return nodes;
}

class Joiner {
 public:
  Joiner(Module& module, const Step& step, PassResult& result)
      : module_(module),
        forward_(module.graph(step.runs[0].graph)),
        backward_(module.graph(step.runs[1].graph)),
        first_(step.runs[0]),
        second_(step.runs[1]),
        joint_(module, "joint", GraphKind::kJoint, forward_),
        result_(result) {}

  void run() {
    add_forward();
    joint_.take_from(backward_);
    add_tangents();
    add_backward();
    joint_.finish(!forward_.outputs.empty() || !backward_.outputs.empty());
    Graph& joint = joint_.graph();
    joint.num_forward_outputs = num_forward_outputs_;
    joint.unknown = forward_.unknown;
    join_layouts();
    replace();
    result_.count("graphs", 2);
  }

 private:
  void add_forward() {
    for (const NodeId node : forward_.nodes()) {
      if (forward_[node].kind != NodeKind::kOutput) joint_.move(node);
    }
    for (size_t i = 0; i < joint_.num_leaves(); ++i) {
      if (is_saved(i)) continue;
      joint_.give_back(i);
      ++num_forward_outputs_;
    }
    // What the inputs of backward are.
    for (size_t i = 0; i < second_.inputs.size(); ++i) {
      const StepInput& input = second_.inputs[i];
      NodeId given;
      if (input.source == Source::kOutput) given = joint_.mapped(first_.outputs[input.place]);
      if (input.source == Source::kShared) given = joint_.mapped(first_.placeholders[input.place]);
      given_.push_back(given);
    }
  }

  // Whether a forward output is there for backward alone: where nothing tells, one that backward takes is.
  bool is_saved(size_t output) const {
    if (Step::is_saved(forward_, output)) return true;
    const bool is_told =
        forward_.num_forward_outputs.has_value() ||
        (output < forward_.outputs.size() && forward_.outputs[output].role != OutputRole::kUnspecified);
    return !is_told && first_.is_taken[output];
  }

  // Inputs of a joint graph stand before all calls.
  void add_tangents() {
    Graph& joint = joint_.graph();
    NodeId begin;
    for (const NodeId node : joint.nodes()) {
      begin = node;
      if (joint[node].kind != NodeKind::kPlaceholder) break;
    }
    const bool has_calls = begin.is_valid() && joint[begin].kind != NodeKind::kPlaceholder;
    for (size_t i = 0; i < given_.size(); ++i) {
      const NodeId placeholder = second_.placeholders[i];
      if (given_[i].is_valid()) {
        joint_.bind(placeholder, given_[i]);
        result_.count("bound");
        continue;
      }
      const NodeId id = joint_.move(placeholder);
      if (has_calls) joint.move_before(id, begin);
    }
  }

  void add_backward() {
    for (const NodeId node : backward_.nodes()) {
      if (backward_[node].kind == NodeKind::kPlaceholder || backward_[node].kind == NodeKind::kOutput) continue;
      if (backward_[node].runs()) {
        mark(joint_.move(node));
      } else {
        joint_.read_attribute(node);
      }
    }
    for (size_t i = 0; i < joint_.num_leaves(); ++i) joint_.give_back(i);
  }

  // Nothing but a mark tells what backward computes without its tangents.
  void mark(NodeId id) {
    Node& node = joint_.graph()[id];
    if (node.phase == Phase::kBackward) return;
    node.phase = Phase::kBackward;
    node.phase_markers = 1U << static_cast<uint32_t>(PhaseMarker::kAutogradBackward);
    result_.count("phase-marks");
  }

  void join_layouts() {
    Graph& joint = joint_.graph();
    const int64_t num_bound = static_cast<int64_t>(
        std::count_if(given_.begin(), given_.end(), [](NodeId given) { return given.is_valid(); }));
    for (const Graph* graph : {&forward_, &backward_}) {
      for (const SubclassLayout& layout : graph->subclasses) {
        SubclassLayout& own = joint.subclasses.emplace_back(layout);
        own.meta.range = joint.copy_args(*graph, layout.meta.range, IdMap<NodeId, NodeId>());
        if (graph == &forward_) continue;
        const bool is_input = module_.text(layout.side) == "input";
        own.first += is_input ? static_cast<int64_t>(first_.placeholders.size()) - num_bound : num_forward_outputs_;
      }
    }
  }

  void replace() {
    const StringId name = joint_.graph().name();
    for (const GraphId id : module_.graphs()) {
      if (module_.graph(id).owner == backward_.name()) module_.graph(id).owner = name;
    }
    for (Symbol& symbol : module_.symbols) {
      if (symbol.graph == forward_.name() || symbol.graph == backward_.name()) symbol.graph = name;
    }
    module_.invocations.clear();
    const GraphId backward = backward_.id();
    module_.replace_graph(forward_.id(), {joint_.graph().id()});
    module_.remove_graphs({backward});
  }

  Module& module_;
  const Graph& forward_;
  const Graph& backward_;
  const StepRun& first_;
  const StepRun& second_;
  Transplant joint_;
  PassResult& result_;
  std::vector<NodeId> given_;  // by input of backward: what it is in the joint graph; invalid: an input
  int64_t num_forward_outputs_ = 0;
};

}  // namespace

Result<PassResult> join_pair(Module& module, const JoinOptions& /*options*/, PassContext& context) {
  PassResult result;
  if (is_joint(module.main())) {
    result.remark(module.main(), module.main().output(), "joined", "nothing to do: this is a joint graph");
    return result;
  }
  const Result<Step> step = find_step(module);
  if (!step.ok()) return step.error();
  if (!is_pair(module, *step)) {
    return refused(module.main(), NodeId(),
                   "the step of this module is not one run of a forward and one of a backward graph",
                   "give both: fxopt opt FORWARD BACKWARD --step --passes join");
  }
  const Graph& forward = module.graph(step->runs[0].graph);
  const NodeId late = find_written_by_runtime(forward, context.facts.of(forward).storages(), taken(*step));
  if (late.is_valid()) {
    return refused(forward, late,
                   "backward reads '%" + std::string(forward.name_of(late)) +
                       "' after the runtime gave that input its new value, and a joint graph reads it before",
                   "let forward save a copy (aten.clone.default)");
  }
  Joiner(module, *step, result).run();
  return result;
}

}  // namespace fxopt
