#include "ir/step/step.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/hash_table.h"
#include "ir/graph/top_level.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

using Source = StepInput::Source;

// Whether the caller owns inputs of this role and passes the same input to several runs.
bool is_shared_role(InputRole role) {
  return role == InputRole::kParameter || role == InputRole::kBuffer || role == InputRole::kOptimizerState ||
         role == InputRole::kConstant;
}

bool runs_backward(const Graph& graph) {
  if (graph.kind != GraphKind::kUnspecified) return graph.kind == GraphKind::kBackward;
  return std::ranges::any_of(graph.nodes(),
                             [&graph](NodeId node) { return recorded_role(graph, node) == InputRole::kSavedValue; });
}

// Returns the place of the graph in a step: 0 for forward and whole steps, 1 for backward, 2 for
// optimizer.
int rank_of(const Graph& graph) {
  if (graph.kind == GraphKind::kOptimizer) return 2;
  return runs_backward(graph) ? 1 : 0;
}

// Returns the property in which an output differs from the input that takes the output, or an empty
// text. A size is not compared if it is symbolic in one of the two graphs.
std::string_view difference(const Graph& from, NodeId given, const Graph& to, NodeId taken) {
  const Value& a = from.value(given);
  const Value& b = to.value(taken);
  if (a.kind == ValueKind::kAbsent || b.kind == ValueKind::kAbsent) return {};
  if (a.kind != b.kind) return "kind";
  if (a.kind != ValueKind::kTensor) return {};
  const Tensor& left = from.pool().tensor(a);
  const Tensor& right = to.pool().tensor(b);
  if (left.dtype != right.dtype) return "dtype";
  if (left.device.is_valid() && right.device.is_valid() && left.device != right.device) return "device";
  if (!left.sizes.is_valid() || !right.sizes.is_valid()) return {};
  const std::vector<Dim>& own = from.module().dims(left.sizes);
  const std::vector<Dim>& other = to.module().dims(right.sizes);
  if (own.size() != other.size()) return "number of dimensions";
  for (size_t i = 0; i < own.size(); ++i) {
    if (own[i].is_static() && other[i].is_static() && own[i].value != other[i].value) return "size";
  }
  return {};
}

class PartFinder {
 public:
  explicit PartFinder(const Module& module) : module_(module) {}

  Result<Step> run() {
    step_.is_given = !module_.invocations.empty();
    const std::optional<Error> error = step_.is_given ? take_invocations() : derive_runs();
    if (error.has_value()) return *error;
    name_runs();
    for (size_t i = 0; i < step_.runs.size(); ++i) {
      if (std::optional<Error> failure = bind(i); failure.has_value()) return *std::move(failure);
      if (saves(step_.runs[i].graph)) forwards_[key_of(i)].push_back(i);
    }
    return std::move(step_);
  }

 private:
  Error bad(std::string message, std::string hint) const {
    return Error{ErrorCode::kBadStep, std::move(message), std::move(hint), {}};
  }

  std::optional<Error> take_invocations() {
    for (const Invocation& invocation : module_.invocations) {
      const GraphId graph = module_.find_graph(invocation.graph);
      if (!graph.is_valid()) {
        return bad("invocation " + std::to_string(step_.runs.size()) + " does not refer to a graph of the module",
                   "use the name of a graph of the module");
      }
      add_run(graph);
      of_run_.push_back(&invocation);
    }
    std::set<GraphId> run;
    for (const StepRun& each : step_.runs) run.insert(each.graph);
    for (const GraphId id : top_level_graphs(module_)) {
      if (run.contains(id)) continue;
      return bad("no invocation runs @" + std::string(module_.text(module_.graph(id).name())),
                 "write an invocation for each graph of the step, or remove the graph");
    }
    return std::nullopt;
  }

  std::optional<Error> derive_runs() {
    std::vector<std::pair<int, GraphId>> graphs;
    for (const GraphId id : top_level_graphs(module_)) graphs.emplace_back(rank_of(module_.graph(id)), id);
    std::ranges::stable_sort(graphs, [](const auto& a, const auto& b) { return a.first < b.first; });
    const auto count = [&](int rank) {
      return std::ranges::count_if(graphs, [&](const auto& graph) { return graph.first == rank; });
    };
    if (count(1) > 0 && count(0) > 1) {
      return bad("the file does not record how " + std::to_string(count(0)) + " forward and " +
                     std::to_string(count(1)) + " backward graphs belong together",
                 "write `invocations` with bindings into the file (`fxopt help steps`)");
    }
    for (const auto& [rank, id] : graphs) {
      add_run(id);
      of_run_.push_back(nullptr);
    }
    return std::nullopt;
  }

  void add_run(GraphId id) {
    const Graph& graph = module_.graph(id);
    StepRun run;
    run.graph = id;
    run.placeholders = placeholders_of(graph);
    run.outputs = output_leaves(graph);
    run.inputs.resize(run.placeholders.size());
    run.is_taken.resize(run.outputs.size(), false);
    step_.runs.push_back(std::move(run));
  }

  // Sets the label of each run. This is the label of the invocation. Without a label, it is the
  // graph's kind if no other graph has that kind, and otherwise the graph's name. If a graph runs
  // more than once, the microbatch or a number is appended.
  void name_runs() {
    std::map<GraphKind, std::set<GraphId>> of_kind;
    std::map<GraphId, size_t> times;
    for (const StepRun& run : step_.runs) {
      of_kind[module_.graph(run.graph).kind].insert(run.graph);
      ++times[run.graph];
    }
    std::set<std::string> taken;
    std::map<GraphId, size_t> nth;
    for (size_t i = 0; i < step_.runs.size(); ++i) {
      StepRun& run = step_.runs[i];
      const Graph& graph = module_.graph(run.graph);
      const Invocation* given = of_run_[i];
      const bool has_kind = graph.kind != GraphKind::kUnspecified && of_kind[graph.kind].size() == 1;
      run.label = has_kind ? name_of(graph.kind) : module_.text(graph.name());
      if (times[run.graph] > 1) {
        const bool has_number = given != nullptr && given->microbatch.value.has_value();
        run.label += "[" + std::to_string(has_number ? *given->microbatch.value : int64_t(nth[run.graph])) + "]";
      }
      ++nth[run.graph];
      if (given != nullptr && given->label.is_valid()) run.label = module_.text(given->label);
      const std::string base = run.label;
      for (size_t number = 1; !taken.insert(run.label).second; ++number)
        run.label = base + "#" + std::to_string(number);
    }
  }

  std::optional<Error> bind(size_t at) {
    StepRun& run = step_.runs[at];
    const Graph& graph = module_.graph(run.graph);
    std::vector<bool> is_bound(run.placeholders.size(), false);
    if (of_run_[at] != nullptr) {
      for (const Binding& binding : of_run_[at]->bindings) {
        if (binding.input >= run.placeholders.size()) continue;  // the verifier reports this binding
        if (is_bound[binding.input]) {
          return bad("input %" + std::string(graph.name_of(run.placeholders[binding.input])) + " of " + run.label +
                         " is bound twice",
                     "remove one of the bindings");
        }
        is_bound[binding.input] = true;
        StepInput& input = run.inputs[binding.input];
        if (!binding.invocation.has_value()) {
          input = own_input(at, binding.input);
        } else if (auto failure = take_output(at, binding.input, *binding.invocation, binding.output, false)) {
          return failure;
        }
      }
    }
    const std::vector<size_t> forwards = is_backward(run.graph) ? forwards_of(at) : std::vector<size_t>();
    for (size_t i = 0; i < run.placeholders.size(); ++i) {
      if (is_bound[i]) continue;
      const InputSpec* spec = recorded_input(graph, run.placeholders[i]);
      const InputRole role = spec == nullptr ? InputRole::kUnspecified : spec->role;
      if (std::optional<Error> failure = bind_input(at, i, role, spec, forwards); failure.has_value()) return failure;
    }
    return std::nullopt;
  }

  // For a backward run, `forwards` has the runs that may have saved its values.
  std::optional<Error> bind_input(size_t at, size_t place, InputRole role, const InputSpec* spec,
                                  const std::vector<size_t>& forwards) {
    StepRun& run = step_.runs[at];
    const Graph& graph = module_.graph(run.graph);
    const NodeId placeholder = run.placeholders[place];
    const bool may_be_saved = role == InputRole::kSavedValue || role == InputRole::kUnspecified;
    const std::optional<size_t> forward = forwards.empty() ? std::nullopt : std::optional(forwards.back());
    if (role == InputRole::kSavedValue && forwards.size() > 1) {
      return bad("the saved values of " + run.label + " may come from any of " + std::to_string(forwards.size()) +
                     " runs, such as " + step_.runs[forwards.front()].label,
                 "give invocations a microbatch, or bind %" + std::string(graph.name_of(placeholder)));
    }
    if (may_be_saved && forward.has_value()) {
      if (spec != nullptr && spec->saved_from_output.has_value() && *spec->saved_from_output >= 0) {
        return take_output(at, place, *forward, static_cast<size_t>(*spec->saved_from_output), false);
      }
      const std::optional<size_t> named = output_named(*forward, graph[placeholder].name);
      if (named.has_value()) return take_output(at, place, *forward, *named, true);
      if (role == InputRole::kSavedValue) {
        return bad("no output of " + step_.runs[*forward].label + " is the saved value %" +
                       std::string(graph.name_of(placeholder)) + " that " + run.label + " takes",
                   "give the forward graph of the same compilation, or bind the input by an invocation");
      }
    }
    if (!forward.has_value() && role == InputRole::kSavedValue && step_.runs.size() > 1) {
      return bad("%" + std::string(graph.name_of(placeholder)) + " of " + run.label +
                     " is a saved value, but no forward graph runs earlier",
                 "give the forward graph of the same compilation, or bind the input by an invocation");
    }
    run.inputs[place] = own_input(at, place);
    if (run.inputs[place].source != Source::kBegin || forwards.empty()) return std::nullopt;
    const std::optional<size_t> handed = input_handed_on(forwards.back(), graph[placeholder].name);
    return handed.has_value() ? take_output(at, place, forwards.back(), *handed, true) : std::nullopt;
  }

  // Returns the saved output of forward that is an input of forward with this name. Backward then
  // receives the caller's tensor, so its input has the same role as in forward.
  std::optional<size_t> input_handed_on(size_t forward, StringId name) {
    const StepRun& run = step_.runs[forward];
    const Graph& graph = module_.graph(run.graph);
    const std::optional<size_t> output = output_named(forward, name);
    const bool is_input = output.has_value() && Step::is_saved(graph, *output) &&
                          graph[run.outputs[*output]].kind == NodeKind::kPlaceholder;
    return is_input ? output : std::nullopt;
  }

  std::optional<Error> take_output(size_t at, size_t place, size_t from, size_t output, bool by_name) {
    StepRun& run = step_.runs[at];
    const Graph& graph = module_.graph(run.graph);
    const std::string input = "input %" + std::string(graph.name_of(run.placeholders[place])) + " of " + run.label;
    StepRun& source = step_.runs[from];
    const std::string what = "output " + std::to_string(output) + " of " + source.label;
    if (from >= at) {
      return bad(input + " is bound to " + what + ", but that run is not earlier",
                 "bind the input to an output of an earlier run");
    }
    if (output >= source.outputs.size()) {
      return bad(
          input + " is bound to " + what + ", but the number of outputs is " + std::to_string(source.outputs.size()),
          "give graphs of the same compilation");
    }
    const NodeId given = source.outputs[output];
    const Graph& other = module_.graph(source.graph);
    if (!given.is_valid())
      return bad(input + " is bound to " + what + ", which is not a node", "bind the input to another output");
    const std::string_view differs = difference(other, given, graph, run.placeholders[place]);
    if (!differs.empty()) {
      return bad(input + " and " + what + ", %" + std::string(other.name_of(given)) + ", differ in their " +
                     std::string(differs),
                 "give graphs of the same compilation");
    }
    run.inputs[place] = {Source::kOutput, from, output, by_name};
    source.is_taken[output] = true;
    return std::nullopt;
  }

  // Returns the runs whose saved values the backward run `at` may take. These are the runs of the
  // same stage and microbatch. If no such run exists, these are the runs whose stage and microbatch
  // may be the same.
  std::vector<size_t> forwards_of(size_t at) const {
    const auto found = forwards_.find(key_of(at));
    if (found != forwards_.end()) return found->second;
    const auto [stage, microbatch] = key_of(at);
    const auto may_be = [](const Number& a, const Number& b) { return !a.has_value() || !b.has_value() || a == b; };
    std::vector<size_t> all;
    for (const auto& [key, runs] : forwards_) {
      if (may_be(stage, key.first) && may_be(microbatch, key.second)) all.insert(all.end(), runs.begin(), runs.end());
    }
    return all;
  }

  // Whether the graph may save values for a backward graph.
  bool saves(GraphId id) {
    const GraphKind kind = module_.graph(id).kind;
    return kind == GraphKind::kForward || (kind == GraphKind::kUnspecified && !is_backward(id));
  }

  // The stage and the microbatch of a run, if known.
  using Number = std::optional<int64_t>;
  std::pair<Number, Number> key_of(size_t run) const {
    const Invocation* given = of_run_[run];
    return given == nullptr ? std::pair<Number, Number>() : std::pair(given->stage.value, given->microbatch.value);
  }

  bool is_backward(GraphId graph) {
    const auto [found, is_new] = is_backward_.try_emplace(graph, false);
    if (is_new) found->second = runs_backward(module_.graph(graph));
    return found->second;
  }

  // Returns the output with this name. If several outputs are the same node, returns the saved
  // output.
  std::optional<size_t> output_named(size_t at, StringId name) {
    const StepRun& run = step_.runs[at];
    const Graph& graph = module_.graph(run.graph);
    HashMap<StringId, size_t>& places = named_[run.graph];
    if (places.empty()) {
      for (const bool is_saved : {true, false}) {
        for (size_t i = 0; i < run.outputs.size(); ++i) {
          if (run.outputs[i].is_valid() && Step::is_saved(graph, i) == is_saved)
            places.try_emplace(graph[run.outputs[i]].name, i);
        }
      }
    }
    const auto found = places.find(name);
    return found == places.end() ? std::nullopt : std::optional<size_t>(found->second);
  }

  // Returns the source of an input of the step. If the caller passes the same input to an earlier
  // run, the source is that run.
  StepInput own_input(size_t at, size_t place) {
    const Graph& graph = module_.graph(step_.runs[at].graph);
    const NodeId placeholder = step_.runs[at].placeholders[place];
    const InputSpec* spec = recorded_input(graph, placeholder);
    const InputRole role = spec == nullptr ? InputRole::kUnspecified : spec->role;
    if (is_shared_role(role)) {
      const auto [found, is_new] = shared_.try_emplace(identity(at, place, *spec), std::pair(at, place));
      if (is_new) return {};
      const auto [run, input] = found->second;
      if (run == at) return {};  // two inputs of one graph are distinct
      const StepRun& first = step_.runs[run];
      const bool is_same =
          difference(module_.graph(first.graph), first.placeholders[input], graph, placeholder).empty();
      return is_same ? StepInput{Source::kShared, run, input, false} : StepInput{};
    }
    const Invocation* given = of_run_[at];
    const bool is_received = given != nullptr && given->stage.value.value_or(0) > 0;
    const bool is_there = role == InputRole::kInput ? !is_received : at == 0 && role != InputRole::kTangent;
    return {is_there ? Source::kBegin : Source::kArrives, 0, 0, false};
  }

  // Returns a key that identifies a parameter or another shared input. An input without a name is
  // shared only by runs of the same graph.
  std::string identity(size_t at, size_t place, const InputSpec& spec) const {
    const std::string_view fqn = module_.text(spec.fqn);
    if (fqn.empty()) return std::to_string(step_.runs[at].graph.index()) + "#" + std::to_string(place);
    std::string key = std::to_string(static_cast<int>(spec.role)) + ":" + std::string(fqn) + ":" +
                      std::string(module_.text(spec.optimizer_key));
    for (const StringId part : spec.subclass_path) key += ":" + std::string(module_.text(part));
    return key;
  }

  const Module& module_;
  Step step_;
  std::vector<const Invocation*> of_run_;  // nullptr if the run was derived
  std::map<GraphId, bool> is_backward_;
  // Runs that save values, by stage and microbatch.
  std::map<std::pair<Number, Number>, std::vector<size_t>> forwards_;
  std::map<GraphId, HashMap<StringId, size_t>> named_;
  std::map<std::string, std::pair<size_t, size_t>> shared_;  // by identity: run and placeholder
};

}  // namespace

bool Step::is_saved(const Graph& graph, size_t output) {
  const OutputRole role = output < graph.outputs.size() ? graph.outputs[output].role : OutputRole::kUnspecified;
  if (role != OutputRole::kUnspecified) return role == OutputRole::kSavedValue;
  return graph.num_forward_outputs.has_value() && static_cast<int64_t>(output) >= *graph.num_forward_outputs;
}

bool Step::is_for_later_run(const Graph& graph, size_t output) {
  const bool has_role = output < graph.outputs.size() && graph.outputs[output].role != OutputRole::kUnspecified;
  return is_saved(graph, output) || (!has_role && !graph.num_forward_outputs.has_value());
}

size_t Step::count(size_t i, StepInput::Source source) const {
  return static_cast<size_t>(std::count_if(runs[i].inputs.begin(), runs[i].inputs.end(),
                                           [source](const StepInput& input) { return input.source == source; }));
}

Result<Step> find_step(const Module& module) { return PartFinder(module).run(); }

void record_step(Module& module, const Step& step) {
  if (!step.is_given) {
    for (const StepRun& run : step.runs) module.invocations.emplace_back().graph = module.graph(run.graph).name();
  }
  for (size_t i = 0; i < step.runs.size(); ++i) {
    std::vector<Binding>& bindings = module.invocations[i].bindings;
    std::set<uint32_t> is_bound;
    for (const Binding& binding : bindings) is_bound.insert(binding.input);
    for (size_t place = 0; place < step.runs[i].inputs.size(); ++place) {
      const StepInput& input = step.runs[i].inputs[place];
      const auto number = static_cast<uint32_t>(place);
      if (input.source != StepInput::Source::kOutput || is_bound.contains(number)) continue;
      bindings.push_back({number, static_cast<uint32_t>(input.run), static_cast<uint32_t>(input.place), {}});
    }
  }
}

}  // namespace fxopt
