#include "passes/partition/split.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/hash_table.h"
#include "ir/step/infer_roles.h"
#include "ir/step/repeat.h"
#include "ir/step/step.h"
#include "ir/values/values.h"
#include "passes/partition/transplant.h"

namespace fxopt {
namespace {

Error refused(const Graph& graph, NodeId node, std::string message, std::string hint) {
  Error error{ErrorCode::kUnsupportedGraph, std::move(message), std::move(hint), {}};
  error.where.graph = graph.module().text(graph.name());
  if (node.is_valid()) {
    error.where.node = graph.name_of(node);
    error.where.module_path = graph.module().text(graph[node].module_path);
  }
  return error;
}

std::string quoted(const Graph& graph, NodeId node) { return "'%" + std::string(graph.name_of(node)) + "'"; }

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
    if (std::optional<Error> error = find_saved()) return *std::move(error);
    if (std::optional<Error> error = check_outputs()) return *std::move(error);
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
    constexpr InputRole kStates[] = {InputRole::kRngState, InputRole::kSeed, InputRole::kRngOffset,
                                     InputRole::kBackwardState};
    if (std::find(std::begin(kStates), std::end(kStates), recorded_role(graph_, node)) == std::end(kStates))
      return false;
    if (!graph_.has_users(node)) return false;
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
    bool is_part = kind == ValueKind::kSymbolic && graph_.op(node).is_pure();
    bool is_forward = true;
    graph_.for_each_input(node, [&](NodeId input) {
      is_forward = is_forward && !in_backward_[input];
      is_part = is_part || (graph_.op(node).view == ViewKind::kProjection && is_container(graph_.value(input)));
    });
    return is_part && is_forward;
  }

  // By the file, else up to the first gradient.
  void count_forward_outputs() {
    leaves_ = output_leaves(graph_);
    if (graph_.num_forward_outputs.has_value()) {
      plan_.num_forward_outputs = static_cast<size_t>(std::max<int64_t>(*graph_.num_forward_outputs, 0));
      plan_.num_forward_outputs = std::min(plan_.num_forward_outputs, leaves_.size());
      return;
    }
    size_t count = 0;
    while (count < leaves_.size() && !is_gradient(count)) ++count;
    plan_.num_forward_outputs = count;
  }

  bool is_gradient(size_t leaf) const {
    const OutputRole recorded = leaf < graph_.outputs.size() ? graph_.outputs[leaf].role : OutputRole::kUnspecified;
    const OutputRole role = recorded == OutputRole::kUnspecified ? roles_.outputs[leaf].role : recorded;
    return role == OutputRole::kGradient || (leaves_[leaf].is_valid() && in_backward_[leaves_[leaf]]);
  }

  std::optional<Error> find_saved() {
    std::optional<Error> error;
    const auto read = [&](NodeId input, NodeId reader) {
      if (in_backward_[input] || graph_[input].kind == NodeKind::kGetAttr || error.has_value()) return;
      is_saved_[input] = true;
      if (!is_container(graph_.value(input))) return;
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
  std::vector<StringId> symbols_in(NodeId node) const {
    const Module& module = graph_.module();
    std::vector<StringId> names;
    const auto add = [&](ExprId expr) {
      if (!expr.is_valid()) return;
      const std::vector<StringId> found = module.exprs.symbols(expr);
      names.insert(names.end(), found.begin(), found.end());
    };
    if (graph_.value(node).kind == ValueKind::kSymbolic) add(ExprId(graph_.value(node).first));
    for_each_tensor(graph_, graph_[node].value, [&](ValueId, const Tensor& tensor) {
      for (const DimsId dims : {tensor.sizes, tensor.strides}) {
        if (!dims.is_valid()) continue;
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
  SplitPlan plan_;
};

// Positions of the parts of a tensor subclass go to the graph that has them.
void divide(const Graph& from, const SubclassLayout& layout, const SplitPlan& plan, Graph& forward, Graph& backward) {
  const bool is_input = from.module().text(layout.side) == "input";
  const int64_t border = static_cast<int64_t>(is_input ? plan.primals.size() : plan.num_forward_outputs);
  const bool is_forward = layout.first < border;
  Graph& to = is_forward ? forward : backward;
  SubclassLayout& own = to.subclasses.emplace_back(layout);
  own.meta.range = to.copy_args(from, layout.meta.range, IdMap<NodeId, NodeId>());
  if (is_forward) return;
  own.first -= border;
  if (is_input) own.first += static_cast<int64_t>(plan.saved.size() + plan.saved_symbols.size());
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
  for (const SubclassLayout& layout : graph.subclasses) divide(graph, layout, plan, forward.graph(), backward.graph());
  for (Symbol& symbol : module.symbols) {
    if (symbol.graph == graph.name()) symbol.graph = forward.graph().name();
  }
  module.replace_graph(id, {forward.graph().id(), backward.graph().id()});
  module.invocations.clear();
  if (const Result<Step> step = find_step(module); step.ok()) record_step(module, *step);
  result.count("saved", static_cast<int64_t>(plan.saved.size()));
  result.count("saved-symbols", static_cast<int64_t>(plan.saved_symbols.size()));
  result.count("graphs", 2);
}

}  // namespace fxopt
