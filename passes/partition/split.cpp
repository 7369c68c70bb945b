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
#include "ir/step/repeat.h"
#include "ir/values/values.h"
#include "passes/partition/transplant.h"
#include "passes/pass/refusal.h"

namespace fxopt {
namespace {

class Planner {
 public:
  Planner(const Graph& graph, Facts& facts) : graph_(graph), facts_(facts), is_saved_(graph.num_ids(), false) {}

  Result<SplitPlan> run(SplitFor what) {
    halves_ = joint_halves(graph_, facts_.phases(), infer_roles(graph_, facts_.storages()));
    sort_calls();
    if (std::optional<Error> error = check_nodes()) return *std::move(error);
    if (std::optional<Error> error = check_outputs()) return *std::move(error);
    if (std::optional<Error> error = check_layouts()) return *std::move(error);
    if (std::optional<Error> error = check_order()) return *std::move(error);
    if (what == SplitFor::kInference) return std::move(plan_);
    if (std::optional<Error> error = find_saved()) return *std::move(error);
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

  // Puts each attribute into the halves that read it. An unused attribute goes into forward.
  void sort_calls() {
    IdMap<NodeId, bool> in_forward(graph_.num_ids(), false), in_backward(graph_.num_ids(), false);
    for (const NodeId node : graph_.nodes()) {
      if (!graph_[node].runs()) continue;
      graph_.for_each_input(
          node, [&](NodeId input) { (halves_.in_backward[node] ? in_backward : in_forward)[input] = true; });
    }
    for (size_t i = 0; i < halves_.leaves.size(); ++i) {
      if (halves_.leaves[i].is_valid())
        (i < halves_.num_forward_outputs ? in_forward : in_backward)[halves_.leaves[i]] = true;
    }
    for (const NodeId node : graph_.nodes()) {
      if (graph_[node].runs()) {
        (halves_.in_backward[node] ? plan_.backward : plan_.forward).push_back(node);
      } else if (graph_[node].kind == NodeKind::kGetAttr) {
        if (in_backward[node]) plan_.backward.push_back(node);
        if (in_forward[node] || !in_backward[node]) plan_.forward.push_back(node);
      }
    }
  }

  std::optional<Error> find_saved() {
    std::optional<Error> error;
    const auto read = [&](NodeId input, NodeId reader) {
      if (halves_.in_backward[input] || graph_[input].kind == NodeKind::kGetAttr || error.has_value()) return;
      is_saved_[input] = true;
      if (!holds_others(graph_, input)) return;
      error = refused(graph_, input,
                      quoted(graph_, input) + " holds several results, and " + quoted(graph_, reader) +
                          " of backward reads it as a whole",
                      "let backward read single results through getitems. Single results can be saved");
    };
    for (const NodeId node : plan_.backward) graph_.for_each_input(node, [&](NodeId input) { read(input, node); });
    for (size_t i = halves_.num_forward_outputs; i < halves_.leaves.size(); ++i) {
      if (halves_.leaves[i].is_valid()) read(halves_.leaves[i], graph_.output());
    }
    return error;
  }

  std::optional<Error> check_outputs() const {
    for (size_t i = 0; i < halves_.num_forward_outputs; ++i) {
      if (!halves_.leaves[i].is_valid() || !halves_.in_backward[halves_.leaves[i]]) continue;
      return refused(graph_, halves_.leaves[i],
                     "forward output " + std::to_string(i) + " depends on a tangent or is marked backward",
                     "put all forward outputs first, and set num_forward_outputs of the graph to match");
    }
    for (size_t i = halves_.num_forward_outputs; i < halves_.leaves.size(); ++i) {
      const OutputRole role = i < graph_.outputs.size() ? graph_.outputs[i].role : OutputRole::kUnspecified;
      if (role != OutputRole::kUser && role != OutputRole::kLoss && role != OutputRole::kMutation) continue;
      return refused(graph_, halves_.leaves[i].is_valid() ? halves_.leaves[i] : graph_.output(),
                     "output " + std::to_string(i) + " has the role " + std::string(name_of(role)) +
                         " but comes after the first gradient",
                     "put all forward outputs first, and set num_forward_outputs of the graph to match");
    }
    return std::nullopt;
  }

  // Rejects roles and phases that a joint graph must not have, and forward nodes that read a
  // backward value.
  std::optional<Error> check_nodes() const {
    for (const NodeId node : graph_.nodes()) {
      if (recorded_role(graph_, node) == InputRole::kSavedValue) {
        return refused(graph_, node, quoted(graph_, node) + " is a saved value, and a joint graph has no such input",
                       "give partition the joint graph, not its forward or backward half");
      }
      if (graph_[node].runs() && graph_[node].phase == Phase::kOptimizer) {
        return refused(graph_, node, quoted(graph_, node) + " belongs to the optimizer, which runs after backward",
                       "partition takes joint graphs of forward and backward");
      }
    }
    std::optional<Error> error;
    for (const NodeId node : plan_.forward) {
      graph_.for_each_input(node, [&](NodeId input) {
        if (!halves_.in_backward[input] || error.has_value()) return;
        error =
            refused(graph_, node,
                    quoted(graph_, node) + " belongs to forward, but reads " + quoted(graph_, input) + " of backward",
                    "its phase is wrongly marked or inferred: a node that depends on a tangent is backward");
      });
    }
    return error;
  }

  // Checks that the parts of each tensor subclass stay together, in order.
  std::optional<Error> check_layouts() {
    IdMap<NodeId, int64_t> primal(graph_.num_ids(), -1), arriving(graph_.num_ids(), -1);
    for (size_t i = 0; i < halves_.primals.size(); ++i) primal[halves_.primals[i]] = static_cast<int64_t>(i);
    for (size_t i = 0; i < halves_.arriving.size(); ++i) arriving[halves_.arriving[i]] = static_cast<int64_t>(i);
    const std::vector<NodeId> inputs = placeholders_of(graph_);
    const int64_t cut = static_cast<int64_t>(halves_.num_forward_outputs);
    for (const SubclassLayout& layout : graph_.subclasses) {
      const int64_t end = layout.first + layout.count;
      const bool is_input = graph_.module().text(layout.side) == "input";
      const size_t all = is_input ? inputs.size() : halves_.leaves.size();
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
                       "the parts of one tensor subclass (" + std::string(graph_.module().text(layout.type)) +
                           ") would be split between the graphs, or would not stay together",
                       "in AOTAutograd's joint graphs, the inputs of forward come before the tangents, and the outputs "
                       "of forward come "
                       "before the gradients");
      }
      plan_.layouts.push_back(place);
    }
    return std::nullopt;
  }

  // Rejects a graph in which forward cannot run before all of backward.
  std::optional<Error> check_order() const {
    std::vector<NodeId> order;
    for (const NodeKind first : {NodeKind::kPlaceholder, NodeKind::kGetAttr}) {
      for (const NodeId node : graph_.nodes()) {
        if (graph_[node].kind == first) order.push_back(node);
      }
    }
    for (const bool is_backward : {false, true}) {
      for (const NodeId node : graph_.nodes()) {
        if (graph_[node].runs() && halves_.in_backward[node] == is_backward) order.push_back(node);
      }
    }
    if (const NodeId output = graph_.output(); output.is_valid()) order.push_back(output);
    const std::optional<DependenceMap::Violation> found = facts_.dependences().violation(order);
    if (!found.has_value()) return std::nullopt;
    return refused(graph_, found->node,
                   quoted(graph_, found->node) + " belongs to forward, but must stay after " +
                       quoted(graph_, found->dependence.on) + " of backward, because of a dependence of kind `" +
                       std::string(name_of(found->dependence.why)) + "` (fxopt help dependences)",
                   "forward ends before backward starts, so no forward node may come after a backward node");
  }

  // Rejects saved values on the memory of inputs that the runtime updates between the two graphs.
  std::optional<Error> check_runtime_writes() const {
    const NodeId node = find_written_by_runtime(graph_, facts_.storages(), plan_.saved);
    if (!node.is_valid()) return std::nullopt;
    return refused(
        graph_, node,
        "backward reads " + quoted(graph_, node) +
            ", which shares memory with an input. The runtime overwrites this input between forward and backward",
        "let backward read a copy that forward makes (aten.clone.default)");
  }

  // Orders saved symbols as PyTorch does. Nodes that define a symbol come first, even if backward
  // needs the symbol only for the sizes of an input. Values computed from symbols come last.
  void sort_symbols() {
    const Module& module = graph_.module();
    for (const Symbol& symbol : module.symbols) {
      if (symbol.kind == SymbolKind::kUnbacked) unbacked_.insert(symbol.name);
    }
    std::vector<NodeId> bindings, calculated;
    HashSet<StringId> known;
    for (const NodeId node : plan_.saved_symbols) {
      const StringId name = symbol_of(node);
      if (name.is_valid()) known.insert(name);
      (name.is_valid() ? bindings : calculated).push_back(node);
    }
    HashMap<StringId, NodeId> bound;  // by symbol: the first forward node with that value
    for (const std::vector<NodeId>* nodes : {&halves_.primals, &plan_.forward}) {
      for (const NodeId node : *nodes) {
        if (const StringId name = symbol_of(node); name.is_valid()) bound.emplace(name, node);
      }
    }
    for (const std::vector<NodeId>* nodes : {&calculated, &plan_.saved, &halves_.arriving}) {
      for (const NodeId node : *nodes) {
        std::vector<StringId> names = symbols_in(node);
        std::ranges::sort(names, {}, [&](StringId name) { return module.text(name); });
        for (const StringId name : names) {
          const auto found = known.insert(name).second ? bound.find(name) : bound.end();
          if (found != bound.end()) bindings.push_back(found->second);
        }
      }
    }
    plan_.saved_symbols = std::move(bindings);
    plan_.saved_symbols.insert(plan_.saved_symbols.end(), calculated.begin(), calculated.end());
  }
  // The symbol that the node defines. The node is an input, or a call that returns a number known
  // only at run time. Invalid for a computed value, such as the size of a tensor.
  StringId symbol_of(NodeId node) const {
    const Value& value = graph_.value(node);
    if (value.kind != ValueKind::kSymbolic) return StringId();
    const Expr& expr = graph_.module().exprs[ExprId(value.first)];
    const bool is_symbol = expr.kind == ExprKind::kSymbol;
    const bool is_brought = graph_[node].kind == NodeKind::kPlaceholder || unbacked_.contains(expr.name);
    return is_symbol && is_brought ? expr.name : StringId();
  }
  // The symbols in the node's value, without symbols that earlier calls of symbols_in() returned.
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
  IdMap<NodeId, bool> is_saved_;
  std::vector<NodeId> objects_;
  HashSet<StringId> unbacked_;  // symbols known only at run time
  HashSet<ExprId> seen_exprs_;
  HashSet<DimsId> seen_dims_;
  SplitPlan plan_;
  JointHalves& halves_ = plan_.halves;
};

// Gives each layout of a tensor subclass to the graph that has the parts. `backward` may be null.
void divide(const Graph& from, const SplitPlan& plan, Graph& forward, Graph* backward) {
  for (size_t i = 0; i < from.subclasses.size(); ++i) {
    const auto [is_forward, first] = plan.layouts[i];
    if (!is_forward && backward == nullptr) continue;
    Graph& to = is_forward ? forward : *backward;
    SubclassLayout& own = to.subclasses.emplace_back(from.subclasses[i]);
    own.meta.range = to.copy_args(from, from.subclasses[i].meta.range, IdMap<NodeId, NodeId>());
    own.first = first;
    const bool is_input = from.module().text(own.side) == "input";
    if (!is_forward && is_input) own.first += static_cast<int64_t>(plan.saved.size() + plan.saved_symbols.size());
  }
}

// Adds unused attributes to forward, so that no attribute is lost.
void add_unread_attributes(const Graph& from, Graph& forward, const Graph& backward) {
  HashSet<StringId> placed;
  for (const Graph* graph : {static_cast<const Graph*>(&forward), &backward}) {
    for (const Attribute& each : graph->attributes) placed.insert(each.path);
  }
  for (const Attribute& each : from.attributes) {
    if (!placed.contains(each.path)) forward.attributes.push_back(each);
  }
}

// Renames the cut graph in records outside of the graphs: symbols, owners of subgraphs, origins.
// Each record then names the first new graph that contains the object of the record. If no new
// graph contains it, the record names the first new graph.
void rename_records(Module& module, StringId old, const std::vector<const Graph*>& made) {
  const auto first = [&](auto&& has) {
    const auto found = std::ranges::find_if(made, [&](const Graph* graph) { return has(*graph); });
    return (found == made.end() ? made.front() : *found)->name();
  };
  for (Symbol& symbol : module.symbols) {
    if (symbol.graph != old) continue;
    symbol.graph = first([&symbol](const Graph& graph) { return graph.find(symbol.node).is_valid(); });
  }
  std::vector<HashSet<StringId>> named(made.size());
  std::vector<HashSet<uint64_t>> uids(made.size());
  const auto first_with = [&](const auto& sets, const auto& item) {
    return first([&](const Graph& graph) {
      const auto at = std::find(made.begin(), made.end(), &graph) - made.begin();
      return sets[static_cast<size_t>(at)].contains(item);
    });
  };
  for (size_t i = 0; i < made.size(); ++i) {
    for (const StringId name : named_graphs(*made[i])) named[i].insert(name);
    for (const NodeId node : made[i]->nodes()) uids[i].insert((*made[i])[node].uid);
  }
  for (const GraphId id : module.graphs()) {
    Graph& graph = module.graph(id);
    if (graph.owner == old) graph.owner = first_with(named, graph.name());
  }
  rename_in_records(module, old, [&](uint64_t uid) { return first_with(uids, uid); });
}

// Replaces the run of the joint graph by runs of the new graphs.
void record_runs(Module& module, const std::vector<const Graph*>& made) {
  const std::vector<Invocation> known = std::exchange(module.invocations, {});
  for (const Graph* graph : made) {
    Invocation& own = module.invocations.emplace_back();
    if (known.size() == 1) own = known.front();
    own.bindings.clear();
    own.label = StringId();
    own.graph = graph->name();
    uint32_t number = 0;
    for (const NodeId node : placeholders_of(*graph)) {
      const InputSpec* spec = recorded_input(*graph, node);
      if (spec != nullptr && spec->saved_from_output.has_value()) {
        own.bindings.push_back({number, 0U, static_cast<uint32_t>(*spec->saved_from_output), {}});
      }
      ++number;
    }
  }
}

void move_forward(const Graph& graph, const SplitPlan& plan, Transplant& forward) {
  for (const std::vector<NodeId>* nodes : {&plan.halves.primals, &plan.forward}) {
    for (const NodeId node : *nodes) forward.move(node);
  }
  for (size_t i = 0; i < plan.halves.num_forward_outputs; ++i) forward.return_leaf(i);
  forward.graph().num_forward_outputs = static_cast<int64_t>(plan.halves.num_forward_outputs);
  forward.graph().unknown = graph.unknown;
}

}  // namespace

Result<SplitPlan> plan_split(const Graph& graph, Facts& facts, SplitFor what) {
  return Planner(graph, facts).run(what);
}

GraphId split(Module& module, GraphId id, const SplitPlan& plan, PassResult& result) {
  const Graph& graph = module.graph(id);
  Transplant forward(module, "forward", GraphKind::kForward, graph);
  Transplant backward(module, "backward", GraphKind::kBackward, graph);
  const size_t count = plan.halves.num_forward_outputs;

  move_forward(graph, plan, forward);
  for (const std::vector<NodeId>* nodes : {&plan.saved, &plan.saved_symbols}) {
    for (const NodeId node : *nodes) forward.return_saved(node);
  }
  forward.finish(true);

  for (size_t i = 0; i < plan.saved_symbols.size(); ++i) {
    backward.receive(plan.saved_symbols[i], count + plan.saved.size() + i);
  }
  for (size_t i = 0; i < plan.saved.size(); ++i) backward.receive(plan.saved[i], count + i);
  for (const NodeId node : plan.halves.arriving) backward.move(node);
  for (const NodeId node : plan.backward) {
    const bool is_in_both = graph[node].kind == NodeKind::kGetAttr && forward.graph().find(graph[node].name).is_valid();
    is_in_both ? backward.copy(node, graph.name_of(node)) : backward.move(node);
  }
  for (size_t i = count; i < backward.num_leaves(); ++i) backward.return_leaf(i);
  backward.finish(!graph.outputs.empty());

  add_unread_attributes(graph, forward.graph(), backward.graph());
  divide(graph, plan, forward.graph(), &backward.graph());
  for (const NodeId node : plan.saved) {
    const NodeId kept = forward.mapped(node);
    if (recorded_input(forward.graph(), kept) != nullptr) forward.graph().mutable_extra(kept).input->donated = false;
  }
  rename_records(module, graph.name(), {&forward.graph(), &backward.graph()});
  module.replace_graph(id, {forward.graph().id(), backward.graph().id()});
  record_runs(module, {&forward.graph(), &backward.graph()});
  result.count("saved", static_cast<int64_t>(plan.saved.size()));
  result.count("saved-symbols", static_cast<int64_t>(plan.saved_symbols.size()));
  result.count("graphs", 2);
  return backward.graph().id();
}

GraphId extract_forward(Module& module, GraphId id, const SplitPlan& plan, PassResult& result) {
  const Graph& graph = module.graph(id);
  Transplant forward(module, "forward", GraphKind::kInference, graph);
  move_forward(graph, plan, forward);
  forward.finish(!graph.outputs.empty());
  divide(graph, plan, forward.graph(), nullptr);
  rename_records(module, graph.name(), {&forward.graph()});
  module.replace_graph(id, {forward.graph().id()});
  record_runs(module, {&forward.graph()});
  result.count("graphs");
  return forward.graph().id();
}

}  // namespace fxopt
