// Makes one joint graph from a forward and a backward graph.
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
// find_step() decides which values backward takes from forward: by bindings, saved_from_output or
// name.

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
#include "passes/pass/refusal.h"

namespace fxopt {
namespace {

using Source = StepInput::Source;

bool is_pair(const Module& module, const Step& step) {
  return step.runs.size() == 2 && module.graph(step.runs[0].graph).kind == GraphKind::kForward &&
         module.graph(step.runs[1].graph).kind == GraphKind::kBackward;
}

// For each input of backward, the forward node that provides its value. Invalid if forward does not
// provide it.
std::vector<NodeId> taken(const Step& step) {
  std::vector<NodeId> nodes;
  for (const StepInput& input : step.runs[1].inputs) {
    NodeId given;
    if (input.source == Source::kOutput) given = step.runs[0].outputs[input.place];
    if (input.source == Source::kShared) given = step.runs[0].placeholders[input.place];
    nodes.push_back(given);
  }
  return nodes;
}

// The first input of backward that has the name of a forward input, but whose value forward does
// not provide. Invalid if no such input exists.
NodeId find_twin(const Graph& forward, const Graph& backward, const Step& step, const std::vector<NodeId>& given) {
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i].is_valid()) continue;
    const NodeId placeholder = step.runs[1].placeholders[i];
    const NodeId other = forward.find(backward[placeholder].name);
    if (other.is_valid() && forward[other].kind == NodeKind::kPlaceholder) return placeholder;
  }
  return NodeId();
}

class Joiner {
 public:
  // `given`: see taken().
  Joiner(Module& module, const Step& step, std::vector<NodeId> given, PassResult& result)
      : module_(module), first_(step.runs[0]), second_(step.runs[1]), given_(std::move(given)), result_(result) {}

  void run() {
    add_inputs();
    add_forward();
    joint_.take_from(backward_);
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
  // Adds inputs before all calls, so that they get their names first.
  void add_inputs() {
    for (const NodeId node : first_.placeholders) joint_.move(node);
    joint_.take_from(backward_);
    for (size_t i = 0; i < given_.size(); ++i) {
      if (!given_[i].is_valid()) joint_.move(second_.placeholders[i]);
    }
    joint_.take_from(forward_);
  }

  void add_forward() {
    for (const NodeId node : forward_.nodes()) {
      if (forward_[node].kind != NodeKind::kOutput && forward_[node].kind != NodeKind::kPlaceholder) joint_.move(node);
    }
    mark_last_of_forward();
    joint_.take_unread_attributes();
    for (size_t i = 0; i < joint_.num_leaves(); ++i) {
      if (is_saved(i)) continue;
      joint_.return_leaf(i);
      ++num_forward_outputs_;
    }
    for (NodeId& given : given_) {
      if (given.is_valid()) given = joint_.mapped(given);
    }
  }

  // All nodes added so far belong to forward.
  void mark_last_of_forward() {
    PhaseMap phases;
    phases.phase = IdMap<NodeId, Phase>(joint_.graph().num_ids(), Phase::kForward);
    result_.count("phase-marks", static_cast<int64_t>(mark_rest_of_forward(joint_.graph(), phases)));
  }

  // Whether only backward uses a forward output.
  bool is_saved(size_t output) const {
    return Step::is_saved(forward_, output) || (first_.is_taken[output] && Step::is_for_later_run(forward_, output));
  }

  void add_backward() {
    for (size_t i = 0; i < given_.size(); ++i) {
      if (!given_[i].is_valid()) continue;
      joint_.bind(second_.placeholders[i], given_[i]);
      result_.count("bound");
    }
    for (const NodeId node : backward_.nodes()) {
      if (backward_[node].kind == NodeKind::kPlaceholder || backward_[node].kind == NodeKind::kOutput) continue;
      if (backward_[node].runs()) {
        mark(joint_.move(node));
      } else {
        joint_.read_attribute(node);
      }
    }
    joint_.take_unread_attributes();
    for (size_t i = 0; i < joint_.num_leaves(); ++i) joint_.return_leaf(i);
  }

  // Only a mark identifies calls of backward that do not depend on tangents.
  void mark(NodeId id) {
    Node& node = joint_.graph()[id];
    if (node.phase == Phase::kBackward) return;
    node.phase = Phase::kBackward;
    node.phase_markers = marker_bit(PhaseMarker::kAutogradBackward);
    result_.count("phase-marks");
  }

  void join_layouts() {
    Graph& joint = joint_.graph();
    // Places among the inputs that backward does not take from forward.
    std::vector<int64_t> places;
    int64_t next = static_cast<int64_t>(first_.placeholders.size());
    for (const NodeId given : given_) places.push_back(given.is_valid() ? -1 : next++);
    for (const Graph* graph : {&forward_, &backward_}) {
      for (const SubclassLayout& layout : graph->subclasses) {
        int64_t first = layout.first;
        if (graph == &backward_) {
          const bool is_input = module_.text(layout.side) == "input";
          const bool is_there = first >= 0 && first < static_cast<int64_t>(places.size());
          first = !is_input ? first + num_forward_outputs_ : is_there ? places[static_cast<size_t>(first)] : -1;
          if (first < 0) continue;  // belongs to a saved value, which is no longer an input
        }
        SubclassLayout& own = joint.subclasses.emplace_back(layout);
        own.first = first;
        own.meta.range = joint.copy_args(*graph, layout.meta.range, IdMap<NodeId, NodeId>());
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
    std::vector<Invocation> invocations = std::exchange(module_.invocations, {});
    if (invocations.size() == 2 && invocations[0].stage == invocations[1].stage &&
        invocations[0].microbatch == invocations[1].microbatch &&
        (invocations[0].stage.is_known() || invocations[0].microbatch.is_known())) {
      Invocation& own = module_.invocations.emplace_back();
      own.graph = name;
      own.stage = invocations[0].stage;
      own.microbatch = invocations[0].microbatch;
    }
    rename_in_records(module_, forward_.name(), [name](uint64_t) { return name; });
    rename_in_records(module_, backward_.name(), [name](uint64_t) { return name; });
    const GraphId backward = backward_.id();
    module_.replace_graph(forward_.id(), {joint_.graph().id()});
    module_.remove_graphs({backward});
  }

  Module& module_;
  const StepRun& first_;
  const StepRun& second_;
  std::vector<NodeId> given_;  // nodes of forward; nodes of the joint graph after add_forward()
  PassResult& result_;
  const Graph& forward_ = module_.graph(first_.graph);
  const Graph& backward_ = module_.graph(second_.graph);
  Transplant joint_{module_, "joint", GraphKind::kJoint, forward_};
  int64_t num_forward_outputs_ = 0;
};

}  // namespace

Result<PassResult> join_pair(Module& module, const JoinOptions& /*options*/, PassContext& context) {
  PassResult result;
  if (is_joint(module.main())) {
    result.remark(module.main(), "joined", "nothing to do: this is a joint graph");
    return result;
  }
  const Result<Step> step = find_step(module);
  if (!step.ok()) return step.error();
  if (!is_pair(module, *step)) {
    return refused(
        module.main(), NodeId(),
        "the step of this module does not consist of one forward graph and one backward graph, each run once",
        "name both files: fxopt opt FORWARD BACKWARD --step --passes join");
  }
  const Graph& forward = module.graph(step->runs[0].graph);
  const std::vector<NodeId> given = taken(*step);
  const NodeId late = find_written_by_runtime(forward, context.facts.of(forward).storages(), given);
  if (late.is_valid()) {
    return refused(forward, late,
                   "backward reads '%" + std::string(forward.name_of(late)) +
                       "' after the runtime updated this input, but a joint graph would read it before the update",
                   "let forward save a copy (aten.clone.default)");
  }
  const Graph& backward = module.graph(step->runs[1].graph);
  if (const NodeId twin = find_twin(forward, backward, *step, given); twin.is_valid()) {
    return refused(backward, twin,
                   "'%" + std::string(backward.name_of(twin)) +
                       "' is the name of two different inputs, one in each graph, but inputs are matched by name",
                   "rename one of these inputs");
  }
  Joiner(module, *step, given, result).run();
  return result;
}

}  // namespace fxopt
