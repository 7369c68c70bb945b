#include "ir/step/compose.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/hash_table.h"
#include "ir/step/phases.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

using Source = StepInput::Source;

class Composer {
 public:
  // If `hands_all` is true, composes as compose_for_proof() describes.
  Composer(Module& module, const Step& step, bool hands_all)
      : module_(module), step_(step), hands_all_(hands_all), graph_(add_graph(module)) {}

  StepGraph run() {
    graph_.kind = kind();
    mapped_.resize(step_.runs.size());
    storages_.resize(step_.runs.size());
    for (size_t i = 0; i < step_.runs.size(); ++i) mapped_[i] = IdMap<NodeId, NodeId>(graph_of(i).num_ids());
    for (const StepRun& each : step_.runs) runs_again_.push_back(!has_run_.insert(each.graph).second);
    for (size_t i = 0; i < step_.runs.size(); ++i) add_inputs(i, Source::kBegin);
    for (size_t i = 0; i < step_.runs.size(); ++i) add_run(i);
    add_output();
    return {graph_.id(), std::move(input_names_)};
  }

  const std::vector<NodeId>& added() const { return added_; }

 private:
  static Graph& add_graph(Module& module) {
    std::string name = "step";
    for (size_t i = 1; module.find_graph(module.intern(name)).is_valid(); ++i) name = "step_" + std::to_string(i);
    return module.add_graph(module.intern(name));
  }

  const Graph& graph_of(size_t run) const { return module_.graph(step_.runs[run].graph); }

  GraphKind kind() const {
    for (size_t i = 0; i < step_.runs.size(); ++i) {
      if (graph_of(i).kind == GraphKind::kBackward) return GraphKind::kForwardLossBackward;
    }
    return graph_of(0).kind;
  }

  // -- one run

  // Adds the run's inputs with this source, which come from outside of the step.
  void add_inputs(size_t at, Source source) {
    const StepRun& run = step_.runs[at];
    for (size_t i = 0; i < run.inputs.size(); ++i) {
      if (run.inputs[i].source != source) continue;
      const NodeId id = add_copy(at, run.placeholders[i], phase_of(at, run.placeholders[i]));
      input_names_.push_back(name_of_input(graph_of(at)[run.placeholders[i]].name));
      if (source == Source::kBegin) continue;
      // Without this, the input would be live in the whole step. end_run() keeps the input live to
      // the end of the run.
      NodeExtra& extra = graph_.mutable_extra(id);
      if (!extra.input.has_value()) extra.input.emplace();
      extra.input->donated = true;
    }
  }

  StringId name_of_input(StringId name) {
    const size_t place = ++input_counts_[name];
    return place == 1 ? name : module_.intern(std::string(module_.text(name)) + "#" + std::to_string(place));
  }

  void bind_inputs(size_t at) {
    const StepRun& run = step_.runs[at];
    for (size_t i = 0; i < run.inputs.size(); ++i) {
      const StepInput& input = run.inputs[i];
      const bool is_output = input.source == Source::kOutput;
      if (!is_output && input.source != Source::kShared) continue;
      const StepRun& from = step_.runs[input.run];
      const NodeId given = mapped_[input.run][is_output ? from.outputs[input.place] : from.placeholders[input.place]];
      mapped_[at][run.placeholders[i]] = given;
      join_storages(at, run.placeholders[i], given);
    }
  }

  // For this run, maps the storages recorded for the placeholder to the storages of the value
  // `given`.
  void join_storages(size_t at, NodeId placeholder, NodeId given) {
    const Graph& graph = graph_of(at);
    std::vector<StorageId> own, other;
    for_each_tensor(graph, graph[placeholder].value, [&](ValueId, const Tensor& each) { own.push_back(each.storage); });
    for_each_tensor(graph_, graph_[given].value, [&](ValueId, const Tensor& each) { other.push_back(each.storage); });
    if (own.size() != other.size()) return;
    for (size_t i = 0; i < own.size(); ++i) {
      if (own[i].is_valid() && other[i].is_valid()) storages_[at].try_emplace(own[i], other[i]);
    }
  }

  void add_run(size_t at) {
    const Graph& graph = graph_of(at);
    bind_inputs(at);
    add_inputs(at, Source::kArrives);
    const PhaseMap phases = resolve_phases(graph);
    NodeId last;
    for (const NodeId node : graph.nodes()) {
      if (graph[node].kind == NodeKind::kPlaceholder || graph[node].kind == NodeKind::kOutput) continue;
      last = add_copy(at, node, phases.phase.get(node));
    }
    end_run(at, last);
  }

  NodeId add_copy(size_t at, NodeId original, Phase phase) {
    const Graph& graph = graph_of(at);
    const Node source = graph[original];
    const NodeId id = graph_.insert_node(
        NodeId(), source.kind, step_.runs[at].label + "." + std::string(graph.name_of(original)), source.target);
    const ArgRange args = graph_.copy_args(graph, source.args, mapped_[at]);
    const ArgRange kwargs = graph_.copy_args(graph, source.kwargs, mapped_[at]);
    graph_.copy_fields(graph, original, id, [&](Tensor& tensor) { tensor.storage = storage(at, tensor.storage); });
    graph_.set_args(id, args, kwargs);
    mapped_[at][original] = id;
    const bool is_backward = graph.kind == GraphKind::kBackward && source.kind != NodeKind::kPlaceholder;
    Node& node = graph_[id];
    node.tag = source.tag;
    node.phase = is_backward ? Phase::kBackward : phase;
    node.phase_markers = marker_bit(PhaseMarker::kInferred);
    copy_rare(at, graph, original, id, is_backward && phase == Phase::kForward);
    if (source.names_attribute()) share_attribute(graph, id);
    return id;
  }

  void copy_rare(size_t at, const Graph& graph, NodeId original, NodeId id, bool is_recomputed) {
    if (is_recomputed) {
      Origin origin;
      origin.graph = graph.name();
      origin.uid = graph[original].uid;
      origin.kind = OriginKind::kRecomputed;
      graph_.mutable_extra(id).origins.push_back(std::move(origin));
    }
    const NodeExtra* extra = graph.extra(original);
    if (extra == nullptr) return;
    NodeExtra& own = graph_.mutable_extra(id);
    own.origins.insert(own.origins.end(), extra->origins.begin(), extra->origins.end());
    own.input = extra->input;
    own.tag_source = extra->tag_source;
    for (ControlDep dep : extra->control) {
      dep.node = mapped_[at][dep.node];
      if (dep.node.is_valid()) own.control.push_back(dep);
    }
  }

  // Returns the storage that a recorded storage has in the step. For a bound input, this is the
  // storage of the bound value. If the graph has run before, this is a new storage. Otherwise this
  // is the recorded storage.
  StorageId storage(size_t at, StorageId recorded) {
    if (!recorded.is_valid()) return recorded;
    const auto found = storages_[at].find(recorded);
    if (found != storages_[at].end()) return found->second;
    if (!runs_again_[at]) return recorded;
    const StorageRecord record = module_.storage(recorded);
    const StorageId own = module_.fresh_storage(record.bytes, record.device);
    storages_[at].try_emplace(recorded, own);
    return own;
  }

  // Adds the attribute to the step once. If another object has its path, the attribute gets a new
  // path.
  void share_attribute(const Graph& graph, NodeId id) {
    const TargetId target = graph_[id].target;
    const Attribute* attribute = target.is_valid() ? attribute_of(graph, module_.target(target).name) : nullptr;
    if (attribute == nullptr) return;
    const auto [placed, is_first] = placed_.try_emplace({graph.id(), attribute->path}, attribute->path);
    if (is_first) placed->second = place_attribute(graph, *attribute);
    if (placed->second != attribute->path) graph_[id].target = module_.target(module_.text(placed->second));
  }

  // Returns the attribute's path in the step. This is its own path, or a new path if another graph
  // uses the path for another object.
  StringId place_attribute(const Graph& graph, Attribute attribute) {
    const auto [taken, is_new] = attributes_.try_emplace(attribute.path, attribute);
    if (!is_new && name_same_thing(taken->second, attribute)) return attribute.path;
    if (!is_new) {
      std::string path = std::string(module_.text(graph.name())) + "." + std::string(module_.text(attribute.path));
      while (!attributes_.try_emplace(module_.intern(path), attribute).second) path += "_";
      attribute.path = module_.intern(path);
    }
    graph_.attributes.push_back(attribute);
    return attribute.path;
  }

  const Attribute* attribute_of(const Graph& graph, StringId path) {
    const auto [places, is_new] = attribute_places_.try_emplace(graph.id());
    for (size_t i = 0; is_new && i < graph.attributes.size(); ++i) {
      places->second.try_emplace(graph.attributes[i].path, i);
    }
    const auto found = places->second.find(path);
    return found == places->second.end() ? nullptr : &graph.attributes[found->second];
  }

  Phase phase_of(size_t at, NodeId placeholder) const {
    return is_tangent(graph_of(at), placeholder) ? Phase::kBackward : Phase::kForward;
  }

  // -- outputs of a run

  // Whether the output is only for a later run of the step. The step then does not return the
  // output.
  bool is_inner(size_t at, size_t output) const {
    const Graph& graph = graph_of(at);
    if (hands_all_ && Step::is_saved(graph, output)) return graph.kind == GraphKind::kForward && step_.runs.size() > 1;
    return step_.runs[at].is_taken[output] && Step::is_for_later_run(graph, output);
  }

  void end_run(size_t at, NodeId last) {
    const StepRun& run = step_.runs[at];
    const Graph& graph = graph_of(at);
    std::vector<Arg> constants;
    if (const NodeId output = graph.output(); hands_all_ && output.is_valid()) {
      constants = leaves_of(graph_, graph_.copy_args(graph, graph[output].args, mapped_[at]));
    }
    std::vector<NodeId> kept;
    for (size_t i = 0; i < run.outputs.size(); ++i) {
      if (!run.outputs[i].is_valid()) {
        if (hands_all_ && !is_inner(at, i)) {
          add_result(at, constants[i], i < graph.outputs.size() ? graph.outputs[i] : OutputSpec());
        }
        continue;
      }
      const NodeId value = mapped_[at][run.outputs[i]];
      const OutputSpec spec = i < graph.outputs.size() ? graph.outputs[i] : OutputSpec();
      if (spec.role == OutputRole::kMutation && copy_back(at, spec, value)) continue;
      if (is_inner(at, i)) continue;
      if (spec.role == OutputRole::kGradient && !hands_all_) {
        const NodeId parameter = parameter_of(at, spec);
        // This is the gradient of an activation, which another run takes.
        if (!parameter.is_valid() && run.is_taken[i]) continue;
        if (parameter.is_valid() && !gradients_.insert(parameter).second) {
          kept.push_back(value);
          added_.push_back(value);
          continue;
        }
      }
      add_result(at, Arg::node(value), spec);
    }
    for (size_t i = 0; i < run.placeholders.size(); ++i) {
      const Source source = run.inputs[i].source;
      const bool is_unread = source == Source::kOutput && !graph.has_users(run.placeholders[i]);
      if (is_unread || source == Source::kArrives) kept.push_back(mapped_[at][run.placeholders[i]]);
    }
    if (last.is_valid()) keep_until(kept, last);
  }

  void keep_until(const std::vector<NodeId>& kept, NodeId last) {
    for (const NodeId node : kept) {
      if (node.is_valid() && node != last)
        graph_.mutable_extra(last).control.push_back({node, ControlKind::kKeepAlive});
    }
  }

  // Copies the new value of an input into the input, unless the value is the input itself. Returns
  // false if the input is not found.
  bool copy_back(size_t at, const OutputSpec& spec, NodeId value) {
    const Graph& graph = graph_of(at);
    const NodeId placeholder = spec.of.is_valid() ? graph.find(spec.of) : input_named(at, spec.fqn);
    if (!placeholder.is_valid() || graph[placeholder].kind != NodeKind::kPlaceholder) return false;
    const NodeId input = mapped_[at][placeholder];
    if (input == value) return true;
    const NodeId copy = graph_.insert_node(NodeId(), NodeKind::kCallFunction, step_.runs[at].label + ".copy_",
                                           module_.target("aten.copy_.default"));
    ArgStack stack(graph_.pool());
    stack.push(Arg::node(input));
    stack.push(Arg::node(value));
    graph_.set_args(copy, stack.take(0), ArgRange());
    Node& node = graph_[copy];
    node.value = graph_[input].value;
    node.phase = graph_[value].phase;
    node.phase_markers = graph_[value].phase_markers;
    return true;
  }

  // Returns the step's node of the parameter whose gradient the output is. Invalid for other
  // gradients.
  NodeId parameter_of(size_t at, const OutputSpec& spec) {
    const Graph& graph = graph_of(at);
    const NodeId of = spec.of.is_valid() ? graph.find(spec.of) : NodeId();
    if (of.is_valid() && recorded_role(graph, of) == InputRole::kParameter) return mapped_[at][of];
    return parameter_named(spec.fqn, spec.subclass_path);
  }

  // Returns the placeholder with the name `fqn` in the model. Invalid if no placeholder has this
  // name.
  NodeId input_named(size_t at, StringId fqn) {
    if (!fqn.is_valid() || module_.text(fqn).empty()) return NodeId();
    const auto [named, is_new] = named_inputs_.try_emplace(step_.runs[at].graph);
    for (size_t i = 0; is_new && i < step_.runs[at].placeholders.size(); ++i) {
      const NodeId placeholder = step_.runs[at].placeholders[i];
      const InputSpec* spec = recorded_input(graph_of(at), placeholder);
      if (spec != nullptr) named->second.try_emplace(spec->fqn, placeholder);
    }
    const auto found = named->second.find(fqn);
    return found == named->second.end() ? NodeId() : found->second;
  }

  void add_result(size_t at, const Arg& value, OutputSpec spec) {
    const Graph& graph = graph_of(at);
    const NodeId of = spec.of.is_valid() ? graph.find(spec.of) : NodeId();
    const NodeId own = of.is_valid() ? mapped_[at][of] : parameter_named(spec.fqn, spec.subclass_path);
    spec.of = own.is_valid() ? graph_[own].name : StringId();
    spec.alias_of_input.reset();
    spec.alias_of_output.reset();
    results_.push_back(value);
    specs_.push_back(std::move(spec));
  }

  NodeId parameter_named(StringId fqn, const std::vector<StringId>& subclass_path) {
    if (!fqn.is_valid() || module_.text(fqn).empty()) return NodeId();
    if (parameters_.empty()) {
      for (const NodeId node : graph_.nodes()) {
        const InputSpec* spec = recorded_input(graph_, node);
        if (spec == nullptr || spec->role != InputRole::kParameter) continue;
        parameters_.try_emplace({spec->fqn, spec->subclass_path}, node);
      }
    }
    const auto found = parameters_.find({fqn, subclass_path});
    return found == parameters_.end() ? NodeId() : found->second;
  }

  void add_output() {
    const NodeId output = graph_.insert_node(NodeId(), NodeKind::kOutput, "output", TargetId());
    ArgStack stack(graph_.pool());
    for (const Arg& result : results_) stack.push(result);
    stack.close(ArgKind::kTuple, 0);
    graph_.set_args(output, stack.take(0), ArgRange());
    const bool has_specs = std::ranges::any_of(
        step_.runs, [this](const StepRun& run) { return !module_.graph(run.graph).outputs.empty(); });
    if (has_specs) graph_.outputs = std::move(specs_);
  }

  Module& module_;
  const Step& step_;
  const bool hands_all_;
  Graph& graph_;
  std::vector<StringId> input_names_;
  std::map<StringId, size_t> input_counts_;
  std::vector<IdMap<NodeId, NodeId>> mapped_;  // by run: from a node to its copy
  std::set<GraphId> has_run_;
  std::vector<bool> runs_again_;                             // by run: whether its graph has run before
  std::vector<HashMap<StorageId, StorageId>> storages_;      // by run: from a recorded storage to the step's storage
  std::map<StringId, Attribute> attributes_;                 // by path
  std::map<std::pair<GraphId, StringId>, StringId> placed_;  // from a graph's path to the step's path
  std::map<GraphId, HashMap<StringId, size_t>> attribute_places_;
  std::map<GraphId, std::map<StringId, NodeId>> named_inputs_;
  std::set<NodeId> gradients_;  // the parameters that have a gradient
  std::vector<NodeId> added_;   // gradients of such a parameter in a later run
  std::map<std::pair<StringId, std::vector<StringId>>, NodeId> parameters_;
  std::vector<Arg> results_;
  std::vector<OutputSpec> specs_;
};

}  // namespace

GraphId compose_step(Module& module, const Step& step, std::vector<NodeId>* added) {
  if (step.runs.size() == 1) return step.runs.front().graph;
  Composer composer(module, step, false);
  const GraphId graph = composer.run().graph;
  if (added != nullptr) *added = composer.added();
  return graph;
}

StepGraph compose_for_proof(Module& module, const Step& step) { return Composer(module, step, true).run(); }

}  // namespace fxopt
