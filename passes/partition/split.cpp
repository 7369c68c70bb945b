#include "passes/partition/split.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/hash_table.h"
#include "ir/graph/top_level.h"
#include "ir/step/infer_roles.h"
#include "ir/step/repeat.h"
#include "ir/values/values.h"
#include "passes/partition/refusal.h"
#include "passes/partition/transplant.h"

namespace fxopt {
namespace {

bool is_container(const Value& value) {
  return value.kind == ValueKind::kTuple || value.kind == ValueKind::kList || value.kind == ValueKind::kDict;
}

class Planner {
 public:
  Planner(const Graph& graph, Facts& facts)
      : graph_(graph), facts_(facts), in_backward_(graph.num_ids(), false), is_saved_(graph.num_ids(), false) {}

  Result<SplitPlan> run() {
    roles_ = infer_roles(graph_, facts_.storages());
    sort_nodes();
    count_forward_outputs();
    sort_calls();
    if (std::optional<Error> error = check_nodes()) return *std::move(error);
    if (std::optional<Error> error = check_outputs()) return *std::move(error);
    if (std::optional<Error> error = check_layouts()) return *std::move(error);
    if (std::optional<Error> error = find_saved()) return *std::move(error);
    if (std::optional<Error> error = check_order()) return *std::move(error);
    for (const NodeId node : graph_.nodes()) {
      if (!is_saved_[node]) continue;
      const ValueKind kind = graph_.value(node).kind;
      const bool is_symbol = kind == ValueKind::kSymbolic || kind == ValueKind::kScalar;
      (is_symbol ? plan_.saved_symbols : is_object(kind) ? objects_ : plan_.saved).push_back(node);
    }
    plan_.saved.insert(plan_.saved.end(), objects_.begin(), objects_.end());
    if (std::optional<Error> error = check_runtime_writes()) return *std::move(error);
    sort_symbols();
    return std::move(plan_);
  }

 private:
  static bool is_object(ValueKind kind) { return kind != ValueKind::kTensor && kind != ValueKind::kAbsent; }

  void sort_nodes() {
    const PhaseMap& phases = facts_.phases();
    for (const NodeId node : graph_.nodes()) {
      switch (graph_[node].kind) {
        case NodeKind::kPlaceholder:
          in_backward_[node] = recorded_role(graph_, node) == InputRole::kTangent;
          break;
        case NodeKind::kOutput:
          break;
        default:
          in_backward_[node] = graph_[node].runs() && phases.is_backward(node) && !is_forward_part(node);
          break;
      }
    }
    std::vector<NodeId> states;
    for (const NodeId node : graph_.nodes()) {
      if (graph_[node].kind != NodeKind::kPlaceholder) continue;
      const bool is_state = is_state_of_backward(node);
      (is_state ? states : in_backward_[node] ? plan_.arriving : plan_.primals).push_back(node);
      in_backward_[node] = in_backward_[node] || is_state;
    }
    plan_.arriving.insert(plan_.arriving.end(), states.begin(), states.end());
  }

  // The state of a generator, and the like, which the runtime hands to backward by itself.
  bool is_state_of_backward(NodeId node) const {
    constexpr InputRole kStates[] = {InputRole::kRngState, InputRole::kSeed, InputRole::kRngOffset, InputRole::kToken,
                                     InputRole::kBackwardState};
    if (std::find(std::begin(kStates), std::end(kStates), recorded_role(graph_, node)) == std::end(kStates))
      return false;
    if (!graph_.has_users(node)) return graph_.name_of(node).starts_with("bwd_");  // as AOTAutograd calls them
    for (UseId use = graph_.first_use(node); use.is_valid(); use = graph_.use(use).next) {
      if (!in_backward_[graph_.use(use).user]) return false;
    }
    return true;
  }

  // Attributes go where they are read, to forward where nobody reads them.
  void sort_calls() {
    IdMap<NodeId, bool> in_forward(graph_.num_ids(), false), in_backward(graph_.num_ids(), false);
    for (const NodeId node : graph_.nodes()) {
      if (!graph_[node].runs()) continue;
      graph_.for_each_input(node, [&](NodeId input) { (in_backward_[node] ? in_backward : in_forward)[input] = true; });
    }
    for (size_t i = 0; i < leaves_.size(); ++i) {
      if (leaves_[i].is_valid()) (i < plan_.num_forward_outputs ? in_forward : in_backward)[leaves_[i]] = true;
    }
    for (const NodeId node : graph_.nodes()) {
      if (graph_[node].runs()) {
        (in_backward_[node] ? plan_.backward : plan_.forward).push_back(node);
      } else if (graph_[node].kind == NodeKind::kGetAttr) {
        if (in_backward[node]) plan_.backward.push_back(node);
        if (in_forward[node] || !in_backward[node]) plan_.forward.push_back(node);
      }
    }
  }

  // What backward alone may read, and forward makes: a part of a forward value, a size of a forward tensor.
  bool is_forward_part(NodeId node) const {
    const ValueKind kind = graph_.value(node).kind;
    bool is_part = kind == ValueKind::kSymbolic && graph_.op(node).is_pure() && !is_copy(node);
    bool is_forward = true;
    graph_.for_each_input(node, [&](NodeId input) {
      is_forward = is_forward && !in_backward_[input];
      is_part = is_part || (takes_part(node) && may_hold_others(input));
    });
    if (const NodeExtra* extra = graph_.extra(node); extra != nullptr) {
      for (const ControlDep& dep : extra->control) is_forward = is_forward && !in_backward_[dep.node];
    }
    return is_part && is_forward;
  }

  // That backward is to compute it again has been decided.
  bool is_copy(NodeId node) const {
    const NodeExtra* extra = graph_.extra(node);
    return extra != nullptr && std::any_of(extra->origins.begin(), extra->origins.end(),
                                           [](const Origin& origin) { return origin.kind == OriginKind::kRecomputed; });
  }

  // `value[1]`.
  bool takes_part(NodeId node) const {
    if (!graph_[node].is_call() || graph_.op(node).view != ViewKind::kProjection) return false;
    const Arg* key = graph_.arg(node, 1);
    return key != nullptr && (key->is(ArgKind::kInt) || key->is(ArgKind::kString));
  }
  // A container; a call of which nothing is recorded.
  bool may_hold_others(NodeId node) const {
    const Value& value = graph_.value(node);
    return is_container(value) || (value.kind == ValueKind::kAbsent && graph_[node].is_call());
  }
  // A container; one of which nothing is recorded, and of which parts are taken.
  bool holds_others(NodeId node) const {
    if (is_container(graph_.value(node))) return true;
    if (!may_hold_others(node)) return false;
    for (UseId use = graph_.first_use(node); use.is_valid(); use = graph_.use(use).next) {
      if (takes_part(graph_.use(use).user)) return true;
    }
    return false;
  }

  // By the file, else up to the first gradient.
  void count_forward_outputs() {
    leaves_ = output_leaves(graph_);
    if (graph_.num_forward_outputs.has_value()) {
      plan_.num_forward_outputs = static_cast<size_t>(std::max<int64_t>(*graph_.num_forward_outputs, 0));
      plan_.num_forward_outputs = std::min(plan_.num_forward_outputs, leaves_.size());
      return;
    }
    size_t most = 0;
    while (most < leaves_.size() && !is_gradient(most)) ++most;
    // A None before the first gradient may be one. AOTAutograd returns a gradient or None for each input.
    size_t least = most;
    while (least > 0 && !leaves_[least - 1].is_valid()) --least;
    const size_t all = leaves_.size() < plan_.primals.size() ? 0 : leaves_.size() - plan_.primals.size();
    plan_.num_forward_outputs = all >= least && all <= most ? all : most == leaves_.size() ? most : least;
  }

  OutputRole recorded_output(size_t leaf) const {
    return leaf < graph_.outputs.size() ? graph_.outputs[leaf].role : OutputRole::kUnspecified;
  }

  bool is_gradient(size_t leaf) const {
    const OutputRole recorded = recorded_output(leaf);
    const OutputRole role = recorded == OutputRole::kUnspecified ? roles_.outputs[leaf].role : recorded;
    return role == OutputRole::kGradient || (leaves_[leaf].is_valid() && in_backward_[leaves_[leaf]]);
  }

  std::optional<Error> find_saved() {
    std::optional<Error> error;
    const auto read = [&](NodeId input, NodeId reader) {
      if (in_backward_[input] || graph_[input].kind == NodeKind::kGetAttr || error.has_value()) return;
      is_saved_[input] = true;
      if (!holds_others(input)) return;
      error = refused(graph_, input,
                      quoted(graph_, input) + " is a value of several parts, and " + quoted(graph_, reader) +
                          " of backward reads it as a whole",
                      "let backward read its parts (operator.getitem), which can be saved");
    };
    for (const NodeId node : plan_.backward) graph_.for_each_input(node, [&](NodeId input) { read(input, node); });
    for (size_t i = plan_.num_forward_outputs; i < leaves_.size(); ++i) {
      if (leaves_[i].is_valid()) read(leaves_[i], graph_.output());
    }
    return error;
  }

  std::optional<Error> check_outputs() const {
    for (size_t i = 0; i < plan_.num_forward_outputs; ++i) {
      if (!leaves_[i].is_valid() || !in_backward_[leaves_[i]]) continue;
      return refused(
          graph_, leaves_[i],
          "output " + std::to_string(i) + " is one of forward, and depends on a tangent or is marked backward",
          "forward outputs come first, then gradients; num_forward_outputs of the graph says how many");
    }
    for (size_t i = plan_.num_forward_outputs; i < leaves_.size(); ++i) {
      const OutputRole role = recorded_output(i);
      if (role != OutputRole::kUser && role != OutputRole::kLoss && role != OutputRole::kMutation) continue;
      return refused(graph_, leaves_[i].is_valid() ? leaves_[i] : graph_.output(),
                     "output " + std::to_string(i) + " has the role " + std::string(name_of(role)) +
                         " and stands after the first gradient",
                     "forward outputs come first; num_forward_outputs of the graph says how many");
    }
    return std::nullopt;
  }

  // Roles and phases that a joint graph does not have, and what is marked forward and reads a tangent.
  std::optional<Error> check_nodes() const {
    for (const NodeId node : graph_.nodes()) {
      if (recorded_role(graph_, node) == InputRole::kSavedValue) {
        return refused(graph_, node, quoted(graph_, node) + " is a saved value, which a joint graph does not take",
                       "partition takes the graph before it was cut");
      }
      if (graph_[node].runs() && graph_[node].phase == Phase::kOptimizer) {
        return refused(graph_, node, quoted(graph_, node) + " is of the optimizer, which runs after backward",
                       "partition takes joint graphs of forward and backward");
      }
    }
    std::optional<Error> error;
    for (const NodeId node : plan_.forward) {
      graph_.for_each_input(node, [&](NodeId input) {
        if (!in_backward_[input] || error.has_value()) return;
        error = refused(graph_, node,
                        quoted(graph_, node) + " is of forward, and reads " + quoted(graph_, input) + " of backward",
                        "its phase is marked, or inferred, wrong: what depends on a tangent is of backward");
      });
    }
    return error;
  }

  // The parts of a tensor subclass stay together, in their order.
  std::optional<Error> check_layouts() {
    IdMap<NodeId, int64_t> primal(graph_.num_ids(), -1), arriving(graph_.num_ids(), -1);
    for (size_t i = 0; i < plan_.primals.size(); ++i) primal[plan_.primals[i]] = static_cast<int64_t>(i);
    for (size_t i = 0; i < plan_.arriving.size(); ++i) arriving[plan_.arriving[i]] = static_cast<int64_t>(i);
    std::vector<NodeId> inputs;
    for (const NodeId node : graph_.nodes()) {
      if (graph_[node].kind == NodeKind::kPlaceholder) inputs.push_back(node);
    }
    const int64_t cut = static_cast<int64_t>(plan_.num_forward_outputs);
    for (const SubclassLayout& layout : graph_.subclasses) {
      const int64_t end = layout.first + layout.count;
      const bool is_input = graph_.module().text(layout.side) == "input";
      const size_t all = is_input ? inputs.size() : leaves_.size();
      bool is_whole = layout.first >= 0 && layout.count >= 0 && end <= static_cast<int64_t>(all);
      SplitPlan::LayoutPlace place{layout.first < cut, layout.first < cut ? layout.first : layout.first - cut};
      if (!is_input) is_whole = is_whole && (end <= cut || layout.first >= cut);
      if (is_input && is_whole && layout.count > 0) {
        const NodeId first = inputs[static_cast<size_t>(layout.first)];
        place = {primal[first] >= 0, std::max(primal[first], arriving[first])};
        for (int64_t i = 0; i < layout.count; ++i) {
          const NodeId part = inputs[static_cast<size_t>(layout.first + i)];
          is_whole = is_whole && (place.is_forward ? primal : arriving)[part] == place.first + i;
        }
      }
      if (!is_whole) {
        return refused(graph_, graph_.output(),
                       "parts of one tensor subclass (" + std::string(graph_.module().text(layout.type)) +
                           ") would be in both graphs, or apart",
                       "the inputs and outputs of each half come together in AOTAutograd's joint graphs");
      }
      plan_.layouts.push_back(place);
    }
    return std::nullopt;
  }

  // Whether forward may run before all of backward.
  std::optional<Error> check_order() const {
    std::vector<NodeId> order;
    for (const NodeKind first : {NodeKind::kPlaceholder, NodeKind::kGetAttr}) {
      for (const NodeId node : graph_.nodes()) {
        if (graph_[node].kind == first) order.push_back(node);
      }
    }
    for (const bool is_backward : {false, true}) {
      for (const NodeId node : graph_.nodes()) {
        if (graph_[node].runs() && in_backward_[node] == is_backward) order.push_back(node);
      }
    }
    if (const NodeId output = graph_.output(); output.is_valid()) order.push_back(output);
    const std::optional<DependenceMap::Violation> found = facts_.dependences().violation(order);
    if (!found.has_value()) return std::nullopt;
    return refused(graph_, found->node,
                   quoted(graph_, found->node) + " is of forward and must stay after " +
                       quoted(graph_, found->dependence.on) + " of backward (" +
                       std::string(name_of(found->dependence.why)) + ")",
                   "what forward does after backward has begun cannot be in a graph that ends before it");
  }

  // The runtime writes between the two graphs.
  std::optional<Error> check_runtime_writes() const {
    const NodeId node = find_written_by_runtime(graph_, facts_.storages(), plan_.saved);
    if (!node.is_valid()) return std::nullopt;
    return refused(graph_, node,
                   "backward reads " + quoted(graph_, node) +
                       ", on the memory of an input that gets its new value when forward ends",
                   "let backward read a copy that forward makes (aten.clone.default)");
  }

  // As PyTorch has them: first those that are a symbol, be it that only sizes of backward's inputs hold it; then what is
  // calculated from symbols.
  void sort_symbols() {
    const Module& module = graph_.module();
    std::vector<NodeId> bindings, calculated;
    HashSet<StringId> known;
    for (const NodeId node : plan_.saved_symbols) {
      const StringId name = symbol_of(node);
      if (name.is_valid()) known.insert(name);
      (name.is_valid() ? bindings : calculated).push_back(node);
    }
    HashMap<StringId, NodeId> bound;  // by symbol: the first node of forward that is it
    for (const std::vector<NodeId>* nodes : {&plan_.primals, &plan_.forward}) {
      for (const NodeId node : *nodes) {
        if (const StringId name = symbol_of(node); name.is_valid()) bound.emplace(name, node);
      }
    }
    for (const std::vector<NodeId>* nodes : {&calculated, &plan_.saved, &plan_.arriving}) {
      for (const NodeId node : *nodes) {
        std::vector<StringId> names = symbols_in(node);
        std::sort(names.begin(), names.end(), [&](StringId a, StringId b) { return module.text(a) < module.text(b); });
        for (const StringId name : names) {
          const auto found = known.insert(name).second ? bound.find(name) : bound.end();
          if (found != bound.end()) bindings.push_back(found->second);
        }
      }
    }
    plan_.saved_symbols = std::move(bindings);
    plan_.saved_symbols.insert(plan_.saved_symbols.end(), calculated.begin(), calculated.end());
  }
  // The symbol that the value of the node is; invalid for what is calculated.
  StringId symbol_of(NodeId node) const {
    const Value& value = graph_.value(node);
    if (value.kind != ValueKind::kSymbolic) return StringId();
    const Expr& expr = graph_.module().exprs[ExprId(value.first)];
    return expr.kind == ExprKind::kSymbol ? expr.name : StringId();
  }
  // Those that were not asked for before.
  std::vector<StringId> symbols_in(NodeId node) {
    const Module& module = graph_.module();
    std::vector<StringId> names;
    const auto add = [&](ExprId expr) {
      if (!expr.is_valid() || !seen_exprs_.insert(expr).second) return;
      const std::vector<StringId> found = module.exprs.symbols(expr);
      names.insert(names.end(), found.begin(), found.end());
    };
    if (graph_.value(node).kind == ValueKind::kSymbolic) add(ExprId(graph_.value(node).first));
    for_each_tensor(graph_, graph_[node].value, [&](ValueId, const Tensor& tensor) {
      for (const DimsId dims : {tensor.sizes, tensor.strides}) {
        if (!dims.is_valid() || !seen_dims_.insert(dims).second) continue;
        for (const Dim& dim : module.dims(dims)) add(dim.expr);
      }
      add(tensor.offset.expr);
    });
    return names;
  }

  const Graph& graph_;
  Facts& facts_;
  RoleMap roles_;
  IdMap<NodeId, bool> in_backward_, is_saved_;
  std::vector<NodeId> leaves_, objects_;
  HashSet<ExprId> seen_exprs_;
  HashSet<DimsId> seen_dims_;
  SplitPlan plan_;
};

// Parts of tensor subclasses go to the graph that has them.
void divide(const Graph& from, const SplitPlan& plan, Graph& forward, Graph& backward) {
  for (size_t i = 0; i < from.subclasses.size(); ++i) {
    const auto [is_forward, first] = plan.layouts[i];
    Graph& to = is_forward ? forward : backward;
    SubclassLayout& own = to.subclasses.emplace_back(from.subclasses[i]);
    own.meta.range = to.copy_args(from, from.subclasses[i].meta.range, IdMap<NodeId, NodeId>());
    own.first = first;
    const bool is_input = from.module().text(own.side) == "input";
    if (!is_forward && is_input) own.first += static_cast<int64_t>(plan.saved.size() + plan.saved_symbols.size());
  }
}

// Nothing is lost: what no node names goes with forward.
void add_unread_attributes(const Graph& from, Graph& forward, const Graph& backward) {
  HashSet<StringId> placed;
  for (const Graph* graph : {static_cast<const Graph*>(&forward), &backward}) {
    for (const Attribute& each : graph->attributes) placed.insert(each.path);
  }
  for (const Attribute& each : from.attributes) {
    if (!placed.contains(each.path)) forward.attributes.push_back(each);
  }
}

// What is kept beside the graphs and names the one that is cut: symbols, owners of subgraphs, origins.
void rename_records(Module& module, StringId old, const Graph& forward, const Graph& backward) {
  for (Symbol& symbol : module.symbols) {
    if (symbol.graph != old) continue;
    const bool is_of_backward = !forward.find(symbol.node).is_valid() && backward.find(symbol.node).is_valid();
    symbol.graph = (is_of_backward ? backward : forward).name();
  }
  HashSet<StringId> named;
  for (const StringId name : named_graphs(forward)) named.insert(name);
  for (const GraphId id : module.graphs()) {
    Graph& graph = module.graph(id);
    if (graph.owner == old) graph.owner = (named.contains(graph.name()) ? forward : backward).name();
  }
  HashSet<uint64_t> uids;
  for (const NodeId node : backward.nodes()) uids.insert(backward[node].uid);
  rename_in_records(module, old, [&](uint64_t uid) { return (uids.contains(uid) ? backward : forward).name(); });
}

// Runs of both in place of the one run of the joint graph.
void record_runs(Module& module, const Graph& forward, const Graph& backward) {
  const std::vector<Invocation> known = std::exchange(module.invocations, {});
  for (const Graph* graph : {&forward, &backward}) {
    Invocation& own = module.invocations.emplace_back();
    if (known.size() == 1) own = known.front();
    own.bindings.clear();
    own.label = StringId();
    own.graph = graph->name();
  }
  size_t number = 0;
  for (const NodeId node : backward.nodes()) {
    if (backward[node].kind != NodeKind::kPlaceholder) continue;
    const InputSpec* spec = recorded_input(backward, node);
    if (spec != nullptr && spec->saved_from_output.has_value()) {
      module.invocations[1].bindings.push_back(
          {static_cast<uint32_t>(number), 0U, static_cast<uint32_t>(*spec->saved_from_output), {}});
    }
    ++number;
  }
}

}  // namespace

Result<SplitPlan> plan_split(const Graph& graph, Facts& facts) { return Planner(graph, facts).run(); }

void split(Module& module, GraphId id, const SplitPlan& plan, PassResult& result) {
  const Graph& graph = module.graph(id);
  Transplant forward(module, "forward", GraphKind::kForward, graph);
  Transplant backward(module, "backward", GraphKind::kBackward, graph);
  const size_t count = plan.num_forward_outputs;

  for (const std::vector<NodeId>* nodes : {&plan.primals, &plan.forward}) {
    for (const NodeId node : *nodes) forward.move(node);
  }
  for (size_t i = 0; i < count; ++i) forward.give_back(i);
  for (const std::vector<NodeId>* nodes : {&plan.saved, &plan.saved_symbols}) {
    for (const NodeId node : *nodes) forward.give_saved(node);
  }
  forward.finish(true);
  forward.graph().num_forward_outputs = static_cast<int64_t>(count);
  forward.graph().unknown = graph.unknown;

  for (size_t i = 0; i < plan.saved_symbols.size(); ++i) {
    backward.receive(plan.saved_symbols[i], count + plan.saved.size() + i);
  }
  for (size_t i = 0; i < plan.saved.size(); ++i) backward.receive(plan.saved[i], count + i);
  for (const NodeId node : plan.arriving) backward.move(node);
  for (const NodeId node : plan.backward) {
    const bool is_in_both = graph[node].kind == NodeKind::kGetAttr && forward.graph().find(graph[node].name).is_valid();
    is_in_both ? backward.copy(node, graph.name_of(node)) : backward.move(node);
  }
  for (size_t i = count; i < backward.num_leaves(); ++i) backward.give_back(i);
  backward.finish(!graph.outputs.empty());

  add_unread_attributes(graph, forward.graph(), backward.graph());
  divide(graph, plan, forward.graph(), backward.graph());
  for (const NodeId node : plan.saved) {
    const NodeId kept = forward.mapped(node);
    if (recorded_input(forward.graph(), kept) != nullptr) forward.graph().mutable_extra(kept).input->donated = false;
  }
  rename_records(module, graph.name(), forward.graph(), backward.graph());
  module.replace_graph(id, {forward.graph().id(), backward.graph().id()});
  record_runs(module, forward.graph(), backward.graph());
  result.count("saved", static_cast<int64_t>(plan.saved.size()));
  result.count("saved-symbols", static_cast<int64_t>(plan.saved_symbols.size()));
  result.count("graphs", 2);
}

}  // namespace fxopt
